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
import { onLedger, wholeNumber, withDriveOptions } from '../command/arguments.ts'
import { type CommandContext, commandLine } from '../command/context.ts'
import { CommandError, endingCode, type ExitCode } from '../command/exit-code.ts'
import { spentText } from '../command/text.ts'
import {
  type AgentOverrides,
  hasOverrides,
  openAgents,
  overrideAgent,
  overrideArguments,
  type RunWithAgents,
} from '../drive/agents.ts'
import { accountName } from '../drive/decide-call.ts'
import { interactiveRun } from '../drive/interactive-run.ts'
import { forkPlace } from '../runs/find-run.ts'
import type { Done } from '../verbs.ts'

/** What `fork` was given. */
export interface ForkVerbOptions extends AgentOverrides {
  readonly ledger: string
  readonly run: string
  /** The last event that the fork shares; where not given, as late as its edit can be made. */
  readonly at?: number
  /** What the user says in the place of the last input before that event. */
  readonly input?: string
  /** Calls and the results that they have instead, in turns. */
  readonly result?: readonly string[]
  /** Calls and how they failed instead, in turns. */
  readonly failed?: readonly string[]
  readonly reason?: string
  readonly yes?: boolean
  readonly deny?: string
  readonly by?: string
  readonly answer?: boolean
  /** Performs writes that no recorded result answers. */
  readonly runWrites?: boolean
  readonly config?: string
}

/** Declares what `fork` takes. */
export function declareFork(verb: Command, context: CommandContext, done: Done): void {
  onLedger(verb)
    .argument('<run>', 'id of the run to fork')
    .option(
      '--at <seq>',
      'the last event that both runs share (default: as late as the edit allows)',
      wholeNumber,
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
    'approve every call that waits for an approval; writes for which there is no recorded result are stubbed: they are not performed, and the model reads so'
  withDriveOptions(verb, { yes }).action(
    async (ledger: string, run: string, options: Omit<ForkVerbOptions, 'ledger' | 'run'>) => {
      done(await fork(context, { ledger, run, ...options }))
    },
  )
}

/**
 * `fork`: starts a run that shares the first events of another, and drives it on with the agents of today. Results on
 * record are served until it asks for another call. The run that is forked stays as it is.
 */
export function fork(context: CommandContext, options: ForkVerbOptions): Promise<ExitCode> {
  const { ledger: ledgerPath, yes, deny, by = accountName(), answer } = options
  const edited = [...pairs('--result', options.result), ...pairs('--failed', options.failed)]
  return openAgents(context, { ...options, verb: 'fork' }, async (found) => {
    const { ledger, state, agents, prices, rules, context: given } = found
    const { runId } = state
    const place = { programName: context.programName, ledgerPath }
    const forked = await forkOptions(found, { ...options, by, edited }, place)
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
    const writes = await heldBackText(ledger, run.id, forked.writes)
    if (writes !== undefined) context.say(writes)
    const { own } = (await diffRuns(ledger, runId, run.id)).right
    const compare = commandLine(context.programName, 'diff', ledgerPath, runId, run.id)
    context.say(
      `Run ${run.id} shares ${atSeq} events with run ${runId}, and took from its own work: ${spentText(own)}.\nCompare them with: ${compare}`,
    )
    return endingCode(result)
  })
}

/** A call that is to have another result, by an end of its id. */
interface EditedCall {
  readonly call: string
  readonly content: string
  readonly outcome: 'success' | 'failed'
}

/** Calls and texts, in turns, as two words of one option each. */
function pairs(option: '--result' | '--failed', words: readonly string[] = []): readonly EditedCall[] {
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

async function forkOptions(
  { ledger, state: { runId }, agents, models }: RunWithAgents,
  request: ForkRequest,
  place: { readonly programName: string; readonly ledgerPath: string },
): Promise<ForkOptions> {
  const { at, input, reason, by, yes, deny, edited } = request
  const needs = {
    calls: edited.map(({ call }) => call),
    decides: yes === true || deny !== undefined,
    replacesInput: input !== undefined,
  }
  const { atSeq, toolCallIds } = await forkPlace(ledger, runId, { ...needs, ...omitUndefined({ at }) }, place)
  const { seq: last } = (await ledger.head(runId)) ?? { seq: 0 }
  // A place that is not there is refused by the runtime, in its words.
  const there = atSeq >= 1 && atSeq <= last ? await foldTo(ledger, runId, atSeq) : undefined
  const results = edited.map(({ content, outcome }, index) => ({
    toolCallId: toolCallIds[index] ?? '',
    content,
    outcome,
  }))
  const edit: ForkEdit = {
    by,
    results,
    approvals: there === undefined ? [] : decisions(there, request),
    ...omitUndefined({ input, reason }),
  }
  const active = agents.find(({ name }) => name === there?.agent)
  const agent =
    active && hasOverrides(request) ? overrideAgent(active, request, { agents, models }) : undefined
  return { atSeq, edit, writes: writesOf(request), ...omitUndefined({ agent }) }
}

/** `--yes` decides what the run asked about; that its writes are performed once more it does not say. */
function writesOf({ runWrites, yes }: ForkVerbOptions): ForkWrites {
  if (runWrites === true) return 'run'
  return yes === true ? 'stub' : 'ask'
}

/** Tells of writes that were not performed in a fork. */
async function heldBackText(
  ledger: Ledger,
  runId: RunId,
  writes: ForkWrites | undefined,
): Promise<string | undefined> {
  if (writes !== 'stub') return undefined
  const names: string[] = []
  for await (const event of ledger.read(runId)) {
    if (event.type === 'tool_result' && isStubbed(event)) names.push(event.name)
  }
  if (names.length === 0) return undefined
  return `Not performed, since this is a fork: ${names.join(', ')}. With --run-writes a fork performs its writes again.`
}

/** Returns a decision for every call that waits for an approval. The fork holds it from its beginning. */
function decisions(state: RunState, { by, yes, deny }: ForkRequest): readonly ForkApproval[] {
  return pendingApprovals(state).flatMap(({ toolCallId }): readonly ForkApproval[] => {
    if (yes === true) return [{ toolCallId, by, approved: true }]
    return deny === undefined ? [] : [{ toolCallId, by, approved: false, reason: deny }]
  })
}
