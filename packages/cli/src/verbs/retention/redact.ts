import { redact } from '@tallystick/ledger'
import type { CommandContext } from '../../command/command-context.ts'
import { commandLine } from '../../command/command-context.ts'
import type { ExitCode } from '../../command/exit-code.ts'
import { CommandError, exitCodes } from '../../command/exit-code.ts'
import { findRun } from '../../lookup/find-run.ts'
import { accountName } from '../../interactive/inbox.ts'
import { withLedger } from '../../ledger/open-ledger.ts'
import { counted } from '../../view/text/run-ending.ts'
import type { Command } from 'commander'
import { onLedger } from '../../command/declare-verb.ts'
import type { Done } from '../../verbs.ts'
import { eventNumbers, filledText } from '../../command/parse-args.ts'

/** What `redact` was given. */
export interface RedactOptions {
  readonly ledger: string
  readonly run: string
  readonly events?: readonly number[]
  readonly all?: boolean
  readonly by?: string
  readonly reason: string
}

/** Declares what `redact` takes. */
export function declareRedact(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb, 'remove the content of events of a run; who removed it and why is recorded')
    .argument('<run>', 'id of the run')
    .option('--events <seqs>', 'these events, such as 4 or 4,7-9', eventNumbers)
    .option('--all', 'every event of the run')
    .option('--by <name>', 'who removes it (default: the name of your account)', filledText)
    .requiredOption('--reason <text>', 'why; it is recorded, so it must not repeat the content')
    .action(async (ledger: string, run: string, options: Omit<RedactOptions, 'ledger' | 'run'>) => {
      done(await redactEvents(context, { ledger, run, ...options }))
    })
}

/** `redact`: takes away what events of a run said. Their facts stay, and so does who took the rest away, and why. */
export function redactEvents(
  { json, print, say, programName }: CommandContext,
  { ledger: ledgerPath, run, events, all = false, by = accountName(), reason }: RedactOptions,
): Promise<ExitCode> {
  if ((events === undefined) !== all) {
    throw new CommandError('usage', 'What is to be taken away? Give either --events SEQS or --all.')
  }
  return withLedger(ledgerPath, 'write', async (ledger) => {
    const runId = await findRun(ledger, run, { programName, ledgerPath })
    const removed = await redact(ledger, runId, events ?? 'all', { by, reason })
    if (json) await print(`${JSON.stringify({ runId, removed, by, reason })}\n`)
    else {
      const verify = commandLine(programName, 'verify', ledgerPath)
      say(
        removed === 0
          ? `Nothing of that was left in run ${runId}.`
          : `What ${counted(removed, 'event')} of run ${runId} said is gone, for good. See what is missing: ${verify}`,
      )
    }
    return exitCodes.ok
  })
}
