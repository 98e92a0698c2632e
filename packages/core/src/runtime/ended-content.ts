import type { Agent } from '../agent/agent.ts'
import { listAgentsInRun } from '../agent/registry.ts'
import type { RecordingPolicy } from '../events/agent-definition.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { RunState } from '../machine/state.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId } from '../values/ids.ts'
import type { RuntimeParts } from './runtime-parts.ts'

/** Recorded in place of the content. */
const removal = { by: 'the recording policy of the run', reason: "content: 'digests'" } as const

/** Refuses a run that is to keep only digests, if its ledger cannot remove content. */
export function requireRemovable(
  agent: Agent<unknown>,
  recording: RecordingPolicy | undefined,
  ledger: Ledger,
): void {
  if (ledger.removeContent !== undefined) return
  const own = listAgentsInRun(agent).map(({ definition }) => definition.policy?.recording)
  if (![recording, ...own].some((policy) => policy?.content === 'digests')) return
  throw new ConfigurationError(
    `The recording policy of a run of agent ${agent.name} says content: 'digests', and its ledger cannot remove content. Use sqliteLedger or postgresLedger, or leave content out.`,
  )
}

/**
 * Removes the content of a run that has ended, and of its child runs, where their recording policy says that only
 * digests stay. A child run keeps its content until its parent has ended, which reads its answer: where it ends after
 * all runs above it, its own end removes it.
 */
export async function removeEndedContent(
  state: Pick<RunState, 'runId' | 'phase' | 'parent' | 'recording' | 'definition'>,
  { ledger, agents, defaults, host }: Pick<RuntimeParts, 'ledger' | 'agents' | 'defaults' | 'host'>,
): Promise<void> {
  if (state.phase !== 'done' || ledger.removeContent === undefined) return
  const at = host.clock.now()
  const { parent } = state
  if (parent?.relation === 'child') {
    const isOfParent = await isDueAbove(ledger, parent.runId)
    if (isOfParent !== undefined) await findRemover(state.runId, { ledger, at, isOfParent })
    return
  }
  const policies = [
    state.recording,
    state.definition.policy?.recording,
    defaults.recording,
    ...agents.all().map(({ definition }) => definition.policy?.recording),
  ]
  // Without one of them no run of this process has such a policy, and nothing is read for it.
  if (policies.some((policy) => policy?.content === 'digests'))
    await findRemover(state.runId, { ledger, at, isOfParent: false })
}

/**
 * True if the content of a run above a child run is removed; `undefined` while one of them is under way, whose end removes
 * that of the child run, too.
 */
async function isDueAbove(ledger: Ledger, runId: RunId): Promise<boolean | undefined> {
  if (!(await hasFinished(ledger, runId))) return undefined
  const { isDigestsOnly, parent } = await readContent(ledger, runId)
  const isDue = parent === undefined ? false : await isDueAbove(ledger, parent)
  return isDue === undefined ? undefined : isDue || isDigestsOnly
}

/** Costs the same for every child run of a parent, however many it has. */
async function hasFinished(ledger: Ledger, runId: RunId): Promise<boolean> {
  for await (const { type } of ledger.find({ runId, types: ['run_finished'] }))
    if (type === 'run_finished') return true
  return false
}

/** Removes the content of a run and of its child runs, if it is due: also if that of a run above is removed. */
async function findRemover(
  runId: RunId,
  { ledger, at, isOfParent }: { readonly ledger: Ledger; readonly at: number; readonly isOfParent: boolean },
): Promise<void> {
  const { hasEnded, isDigestsOnly, children } = await readContent(ledger, runId)
  // A run that is still stopping needs its content until it has ended.
  if (!hasEnded) return
  const isDue = isOfParent || isDigestsOnly
  for (const child of children) await findRemover(child, { ledger, at, isOfParent: isDue })
  if (isDue) await ledger.removeContent?.(runId, { ...removal, at })
}

interface RecordedContent {
  readonly hasEnded: boolean
  /** By its own policy, or by that of any agent that was active in it. */
  readonly isDigestsOnly: boolean
  /** The run whose call it does the work of. */
  readonly parent: RunId | undefined
  readonly children: Set<RunId>
}

async function readContent(ledger: Ledger, runId: RunId): Promise<RecordedContent> {
  let given: RecordingPolicy['content']
  let parent: RunId | undefined
  let [isDigestsOnly, hasEnded] = [false, false]
  const children = new Set<RunId>()
  for await (const event of ledger.find({ runId, types })) {
    if (event.type === 'run_started') {
      given = event.recording?.content
      if (event.parent?.relation === 'child') parent = event.parent.runId
    }
    isDigestsOnly ||=
      'definition' in event && (given ?? event.definition?.policy?.recording?.content) === 'digests'
    if (event.type === 'tool_started' && event.child !== undefined) children.add(event.child)
    if (event.type === 'run_finished') hasEnded = true
  }
  return { hasEnded, isDigestsOnly, parent, children }
}

const types = ['run_started', 'run_resumed', 'agent_handed_off', 'tool_started', 'run_finished'] as const
