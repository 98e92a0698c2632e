import {
  createRuntime,
  type ForkApproval,
  type ForkEdit,
  type ForkOptions,
  type Ledger,
  type RunId,
  type RunState,
} from '@tallystick/core'
import { isStubbed, omitUndefined } from '@tallystick/core/internal'
import { pendingApprovals } from '@tallystick/core/machine'
import type { ForkWrites } from '@tallystick/core/vocabulary'
import { foldTo } from '@tallystick/ledger'
import { diffRuns } from '@tallystick/replay'
import type { Command } from 'commander'
import {
  readAccountName,
  declareRunArguments,
  parseWholeNumber,
  declareDriveOptions,
} from '../command/arguments.ts'
import { type CommandContext, formatCommand } from '../command/context.ts'
import { CommandError, toExitCode, type ExitCode } from '../command/exit-code.ts'
import type { Place } from '../command/next-commands.ts'
import { formatCount, formatSpent } from '../command/text.ts'
import {
  type AgentOverrides,
  hasOverrides,
  openAgents,
  overrideAgent,
  overrideArguments,
  type RunWithAgents,
} from '../drive/agents.ts'
import { interactiveRun } from '../drive/interactive-run.ts'
import { findForkPlace, type NamedRun } from '../runs/find-run.ts'
import type { Done } from '../verbs.ts'

interface ForkVerbOptions extends AgentOverrides {
  readonly at?: number
  readonly input?: string
  /** Calls and their new results, in turns. */
  readonly result?: readonly string[]
  /** Calls and their errors, in turns. */
  readonly failed?: readonly string[]
  readonly reason?: string
  readonly yes?: boolean
  readonly deny?: string
  readonly by?: string
  readonly answer?: boolean
  readonly runWrites?: boolean
  readonly config?: string
}

/** Declares `fork`. The run that is forked stays as it is. */
export function declareFork(verb: Command, context: CommandContext, done: Done): void {
  declareRunArguments(verb)
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
  declareDriveOptions(verb, yes).action(async (ledger: string, run: string, options: ForkVerbOptions) => {
    done(await fork(context, { ledger, run }, options))
  })
}

function fork(context: CommandContext, named: NamedRun, options: ForkVerbOptions): Promise<ExitCode> {
  const { ledger: ledgerPath } = named
  const { yes, deny, by = readAccountName(), answer, config } = options
  const { programName, say } = context
  const edited = [...readPairs('--result', options.result), ...readPairs('--failed', options.failed)]
  return openAgents(context, { ...named, config, verb: 'fork' }, async (found) => {
    const { ledger, state, agents, prices, rules, context: given } = found
    const { runId } = state
    const forked = await readForkOptions(found, { ...options, by, edited }, { programName, ledgerPath })
    const { atSeq } = forked
    const runtime = createRuntime({ ledger, agents, ...rules, ...omitUndefined({ prices }) })
    const run = runtime.fork(runId, { ...forked, ...omitUndefined({ context: given }) })
    const result = await interactiveRun(context, run, {
      ledgerPath,
      yes,
      deny,
      by,
      answer,
      drain: () => runtime.drain(),
      shownSeq: atSeq,
      resumeArguments: overrideArguments(options),
    })
    if (forked.writes === 'stub') await reportStubs(context, ledger, run.id)
    const { own } = (await diffRuns(ledger, runId, run.id)).right
    const compare = formatCommand(programName, 'diff', ledgerPath, runId, run.id)
    say(
      `Run ${run.id} shares ${formatCount(atSeq, 'event')} with run ${runId}. Its own work: ${formatSpent(own)}.\nCompare them with: ${compare}`,
    )
    return toExitCode(result)
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

interface ForkRequest extends ForkVerbOptions {
  readonly by: string
  readonly edited: readonly EditedCall[]
}

async function readForkOptions(
  { ledger, state: { runId }, agents, models }: RunWithAgents,
  request: ForkRequest,
  place: Place,
): Promise<ForkOptions> {
  const { at, input, reason, by, yes, deny, edited } = request
  const needs = {
    calls: edited.map(({ call }) => call),
    decides: yes === true || deny !== undefined,
    replacesInput: input !== undefined,
  }
  const { atSeq, toolCallIds } = await findForkPlace(
    ledger,
    runId,
    { ...needs, ...omitUndefined({ at }) },
    place,
  )
  const { seq: last } = (await ledger.head(runId)) ?? { seq: 0 }
  // The runtime itself refuses a place that does not exist.
  const there = atSeq >= 1 && atSeq <= last ? await foldTo(ledger, runId, atSeq) : undefined
  const results = edited.map(({ content, outcome }, index) => ({
    toolCallId: toolCallIds[index] ?? '',
    content,
    outcome,
  }))
  const edit: ForkEdit = {
    by,
    results,
    approvals: there === undefined ? [] : listDecisions(there, request),
    ...omitUndefined({ input, reason }),
  }
  const active = agents.find(({ name }) => name === there?.agent)
  const agent =
    active && hasOverrides(request) ? overrideAgent(active, request, { agents, models }) : undefined
  return { atSeq, edit, writes: chooseWrites(request), ...omitUndefined({ agent }) }
}

/** `--yes` approves what the run asks; it does not mean that writes are performed once more. */
function chooseWrites({ runWrites, yes }: ForkVerbOptions): ForkWrites {
  if (runWrites === true) return 'run'
  return yes === true ? 'stub' : 'ask'
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

/** A decision for every call that waits for an approval. The fork begins with them. */
function listDecisions(state: RunState, { by, yes, deny }: ForkRequest): readonly ForkApproval[] {
  return pendingApprovals(state).flatMap(({ toolCallId }): readonly ForkApproval[] => {
    if (yes === true) return [{ toolCallId, by, approved: true }]
    return deny === undefined ? [] : [{ toolCallId, by, approved: false, reason: deny }]
  })
}
