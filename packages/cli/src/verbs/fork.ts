import { type ForkApproval, type ForkEdit, type ForkOptions, type Ledger, type RunId } from '@tallystick/core'
import { isStubbed, omitUndefined } from '@tallystick/core/internal'
import { listPendingApprovals } from '@tallystick/core/machine'
import { foldTo } from '@tallystick/ledger'
import { diffRuns } from '@tallystick/replay'
import type { Command } from '@commander-js/extra-typings'
import {
  readAccountName,
  declareRunArguments,
  parseWholeNumber,
  type DriveOptions,
  declareDriveOptions,
} from '../command/arguments.ts'
import { type CommandContext, formatCommand } from '../command/context.ts'
import { CommandError, toExitCode } from '../command/exit-code.ts'
import type { Place } from '../command/next-commands.ts'
import { formatCount, formatSpent } from '../command/text.ts'
import {
  createConfiguredRuntime,
  hasOverrides,
  openAgents,
  overrideAgent,
  overrideArguments,
  type RunWithAgents,
} from '../drive/agents.ts'
import { runInteractively } from '../drive/interactive-run.ts'
import { findForkPlace } from '../runs/find-run.ts'
import type { Done } from '../verbs.ts'

/** Declares `fork`. The run that is forked stays as it is. */
export function declareFork(verb: Command, context: CommandContext, done: Done): void {
  const forked = declareRunArguments(verb)
    .option(
      '--at <seq>',
      'the last event that both runs share (default: as late as the edit allows)',
      parseWholeNumber,
    )
    .option('--input <text>', 'replace the last input of the user before that event')
    .option('--result <call text...>', 'replace the result of a call: an end of its id, and the new result')
    .option('--failed <call text...>', 'let a call fail: an end of its id, and the error')
    .option('--reason <text>', 'why, for the record')
    .option(
      '--run-writes',
      'perform the writes for which there is no recorded result (default: each waits for an approval, or is stubbed with --yes)',
    )
  const yes =
    'approve every call that waits for an approval; writes for which there is no recorded result are stubbed: they are not performed, and the model is told so'
  declareDriveOptions(forked, yes).action(async (ledgerPath, named, options) => {
    const { result: results, failed, yes, deny, by = readAccountName(), answer, config } = options
    const { programName, say } = context
    const edited = [...readPairs('--result', results), ...readPairs('--failed', failed)]
    const asked = { verb: 'fork', ledger: ledgerPath, run: named, config } as const
    await openAgents(context, asked, async (found) => {
      const { ledger, state, context: given } = found
      const { runId } = state
      const place = { programName, ledgerPath }
      const fork = await readForkOptions(found, { ...options, by, edited }, place)
      const runtime = createConfiguredRuntime(ledger, found)
      const run = runtime.fork(runId, { ...fork, ...omitUndefined({ context: given }) })
      const result = await runInteractively(context, run, {
        ...{ ledgerPath, yes, deny, by, answer },
        drain: () => runtime.drain(),
        shownSeq: fork.atSeq,
        resumeArguments: overrideArguments(options),
      })
      if (fork.writes === 'stub') await reportStubs(context, ledger, run.id)
      const { own } = (await diffRuns(ledger, runId, run.id)).right
      const compare = formatCommand(programName, 'diff', ledgerPath, runId, run.id)
      say(
        `Run ${run.id} shares ${formatCount(fork.atSeq, 'event')} with run ${runId}. Its own work: ${formatSpent(own)}.\nCompare them with: ${compare}`,
      )
      done(toExitCode(result))
    })
  })
}

/** A call that gets another result, by an end of its id. */
interface EditedCall {
  readonly call: string
  readonly content: string
  readonly outcome: 'success' | 'failed'
}

/** Reads the words of an option as calls and texts, in turns. */
function readPairs(option: '--result' | '--failed', words: readonly string[] = []): readonly EditedCall[] {
  if (words.length % 2 === 1) {
    throw new CommandError('usage', `${option} takes a call and a text, such as: ${option} 2_1_1 '0 left'`)
  }
  const outcome = option === '--result' ? 'success' : 'failed'
  return Array.from({ length: words.length / 2 }, (_, index) => {
    const [call = '', content = ''] = words.slice(2 * index)
    return { call, content, outcome }
  })
}

interface ForkRequest extends DriveOptions {
  readonly at?: number
  readonly input?: string
  readonly reason?: string
  readonly runWrites?: true
  readonly by: string
  readonly edited: readonly EditedCall[]
}

async function readForkOptions(
  { ledger, state: { runId }, agents, models }: RunWithAgents,
  request: ForkRequest,
  place: Place,
): Promise<ForkOptions> {
  const { at, input, reason, by, yes, deny, runWrites, edited } = request
  const needs = {
    calls: edited.map(({ call }) => call),
    decides: yes === true || deny !== undefined,
    replacesInput: input !== undefined,
    ...omitUndefined({ at }),
  }
  const { atSeq, toolCallIds } = await findForkPlace(ledger, runId, needs, place)
  const { seq: last } = (await ledger.head(runId)) ?? { seq: 0 }
  // The runtime itself refuses a place that does not exist.
  const there = atSeq >= 1 && atSeq <= last ? await foldTo(ledger, runId, atSeq) : undefined
  const edit: ForkEdit = {
    by,
    results: edited.map(({ content, outcome }, index) => ({
      toolCallId: toolCallIds[index] ?? '',
      content,
      outcome,
    })),
    // The fork begins with a decision for every call that waits for an approval.
    approvals: (there ? listPendingApprovals(there) : []).flatMap(
      ({ toolCallId }): readonly ForkApproval[] => {
        if (yes === true) return [{ toolCallId, by, approved: true }]
        return deny === undefined ? [] : [{ toolCallId, by, approved: false, reason: deny }]
      },
    ),
    ...omitUndefined({ input, reason }),
  }
  const active = agents.find(({ name }) => name === there?.agent)
  const agent =
    active && hasOverrides(request) ? overrideAgent(active, request, { agents, models }) : undefined
  // `--yes` approves what the run asks; it does not mean that writes are performed once more.
  const writes = runWrites === true ? 'run' : yes === true ? 'stub' : 'ask'
  return { atSeq, edit, writes, ...omitUndefined({ agent }) }
}

/** Says which writes were not performed. */
async function reportStubs({ say }: CommandContext, ledger: Ledger, runId: RunId): Promise<void> {
  const names: string[] = []
  for await (const event of ledger.read(runId)) {
    if (event.type === 'tool_result' && isStubbed(event)) names.push(event.name)
  }
  if (names.length > 0)
    say(
      `Not performed, since this is a fork: ${names.join(', ')}. With --run-writes a fork performs its writes again.`,
    )
}
