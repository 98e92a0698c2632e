import type { Command } from 'commander'
import type { CommandContext } from './command-context.ts'
import { examples } from './examples.ts'
import type { ExitCode } from './exit-code.ts'

/** Receives the exit code of the verb that was called. */
export type Done = (code: ExitCode) => void

/** A verb as the help lists it. Its module declares what it takes, and is loaded when the verb is named. */
export interface ListedVerb {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<VerbModule>
}

/** The module of a verb. */
export interface VerbModule {
  /** Adds the description, arguments, options and action of the verb. */
  declareVerb(verb: Command, context: CommandContext, done: Done): void
}

/** Returns what the help of a verb ends with. */
export function exampleOf(verb: string): string {
  const example = examples[verb]
  return example === undefined ? '' : `\nExample:\n  ${example}`
}

/** Declares what every verb takes that works on a ledger. Its help ends with its example. */
export function onLedger(verb: Command, description: string): Command {
  return verb
    .description(description)
    .argument('<ledger>', 'file of the ledger')
    .option('--json', 'print JSON; errors too, on stderr')
    .addHelpText('after', exampleOf(verb.name()))
}
