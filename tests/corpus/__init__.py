"""The labelled corpus: cases whose right answer is known, judged as `flightline judge` judges a bundle.

families/*.yml  the labels, written by hand from vendor documents; no label is taken from what the code prints
cases.py        from a label to cases
material.py     from a case to the files of its bundle
run.py          judges every case and counts; `make corpus` writes docs/corpus.md
"""
