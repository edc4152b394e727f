"""Every message a tool can print, and what it means for the node: a list made from the tools' sources, not from our code.

data/<tool>.yml    one file per tool and source (the format is below)
heads.py           what stands before a line in the logs that people bring, per bundle file
catalogue.py       from a message to a log behind each head, through the judgement, to the answer that its class wants

A file of data/:

    tool: ena                                  the table's row in docs/corpus.md
    version: 2.17.0                            what was read: release, tag or date
    source: amzn-drivers, kernel/linux/ena     where: repository and folder, or the document
    file: kernel.log                           the bundle file that carries the line (see heads.py)
    instance_type: p5.48xlarge                 left out: p5.48xlarge
    check: kernel_errors                       that judges its messages
    status: {condemns: FAIL}                   left out: a class's messages have any status that the class allows
    messages:
      - {sample: "ena {pci} {eth}: Keep alive watchdog timeout.", degrades: "why a message is of this class"}

A sample is the message as the tool prints it, without its head, or a list of such messages with one class and reason;
words in braces are filled in from FIELDS of catalogue.py, printf's conversions (%d, %s) from CONVERSIONS. Messages that
have words in common are one template: "Reset indication didn't turn {on | off}" is two messages, and with two such
braces it is all pairs. Only the short text of the message is taken, no code around it. Optional keys of a message:
`times` (the line so often, with rising stamps: repetition escalates), `codes` (one message for each, in place of
{code}; given with a text, that in place of {text}), `before` (lines of the same tool that stand before it), `check` and
`status` (another than the file's).

The classes, and what the judgement must then say:

    condemns   the node, device or link cannot be used as it is: `check` is FAIL, or UNKNOWN where `status` says so
    degrades   a person should look, the node may serve: `check` is WARN, and no check blocks
    job        a job failed or was refused, the node is not to blame by this line: `check` is not FAIL
    nothing    normal, or harmless beside what follows it: no rule warns or blocks. Where it stands alone in an error's
               shape, `unread_lines` may ask a person to read it; docs/corpus.md counts those

A kernel log's `job` may not block either; a job's own log (NCCL) may be UNKNOWN: its node is not shown to be good.
"""
