"""The real hosts: systemd-nspawn machines with their own systemd, sshd, apt and network. `make hosts`, `make hosts-down`.

One directory, .flightline/hosts, holds everything; the image and the package cache in it outlive `hosts-down`. A machine
lives in a process, mount and PID namespace of its own, so that ending one process ends the machine and unmounts it.
"""
