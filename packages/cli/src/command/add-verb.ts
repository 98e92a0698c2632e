import type { Command } from 'commander'
import { examples } from './examples.ts'
import type { ExitCode } from './exit-code.ts'

/** Hears how the verb that was called ended. */
export type Done = (code: ExitCode) => void

/** What the help of a verb ends with. */
export function exampleOf(verb: string): string {
  const example = examples[verb]
  return example === undefined ? '' : `\nExample:\n  ${example}`
}

/** Adds a verb that works on a ledger. Its help ends with its example. */
export function addVerb(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .argument('<ledger>', 'file of the ledger')
    .option('--json', 'print JSON; errors too, on stderr')
    .addHelpText('after', exampleOf(name))
}
