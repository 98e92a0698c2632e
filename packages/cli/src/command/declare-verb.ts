import type { Command } from 'commander'
import type { CommandContext } from './command-context.ts'
import type { ExitCode } from './exit-code.ts'

/** Receives the exit code of the verb that was called. */
export type Done = (code: ExitCode) => void

/** What the help says of a verb. */
export interface VerbHelp {
  readonly summary: string
  /** One call, as a user would type it: the help of the verb ends with it. */
  readonly example: string
}

/** The folders of verbs. */
export type VerbGroup = 'check' | 'decide' | 'drive' | 'inspect' | 'mcp' | 'retention' | 'transfer' | 'watch'

/** A verb as the help lists it. Its module declares what it takes, and is loaded when the verb is named. */
export interface ListedVerb extends VerbHelp {
  readonly name: string
  readonly group: VerbGroup
  readonly load: () => Promise<VerbModule>
}

/** The module of a verb: `verbs/GROUP/NAME.ts`. */
export interface VerbModule {
  readonly listed: VerbHelp
  /** Adds the description, arguments, options and action of the verb. */
  declareVerb(verb: Command, context: CommandContext, done: Done): void
}

/** Declares what every verb takes that works on a ledger. */
export function onLedger(verb: Command, description: string): Command {
  return verb
    .description(description)
    .argument('<ledger>', 'file or connection string of the ledger')
    .option('--json', 'print JSON; errors too, on stderr')
}
