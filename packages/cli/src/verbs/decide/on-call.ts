import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import { filledText } from '../../command/parse-args.ts'

/** Declares what every verb takes that decides about one tool call. */
export function onCall(verb: Command): Command {
  return onLedger(verb)
    .argument('<run>', 'id of the run')
    .argument('<call>', 'id of the tool call, or an unambiguous end of it')
    .option('--by <name>', 'who decides (default: the name of your account)', filledText)
}
