import type { Command } from 'commander'

/** Declares the arguments and options of every verb that works on a ledger. */
export function onLedger(verb: Command, description?: string): Command {
  if (description !== undefined) verb.description(description)
  return verb
    .argument('<ledger>', 'file or connection string of the ledger')
    .option('--json', 'print JSON; errors too, on stderr')
}
