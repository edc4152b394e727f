"""Flightline's control side: run store, fleet judgement, report, command line."""
