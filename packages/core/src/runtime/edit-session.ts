import { EMPTY } from 'rxjs'
import type { Agent } from '../agent/agent.ts'
import type { AgentRegistry } from '../agent/registry.ts'
import { defineAgent } from '../agent/define-agent.ts'
import type { StartCommand } from '../events/commands.ts'
import type { Message } from '../events/content.ts'
import { defaultRetryPolicy } from '../events/limits.ts'
import { findPairingFault } from '../machine/history.ts'
import type { RunState } from '../machine/state.ts'
import { ConfigurationError, RunNotFoundError } from '../values/errors.ts'
import { parseRunId } from '../values/ids.ts'
import { deepFreeze, omitUndefined } from '../values/json.ts'
import { anyFunction, fields, filledText, maybe, numberFrom, oneOf, type Schema } from '../values/option.ts'
import { loadState, readStart } from './run-result.ts'
import type { RunRegistry } from './run-registry.ts'
import { type Past, type PastOptions, readLastRun, readPast } from './session.ts'
import { parseMessages, type InputMessage } from './start-run.ts'

/** Who edits a session, and how. */
export interface SessionEditOptions extends Pick<PastOptions, 'whenBusy' | 'mayFollow'> {
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** As for a run: who edits, by the name that the application knows its callers by. */
  readonly owner?: string | undefined
  /** Of a session that has not begun: as for a run, whom it is about. */
  readonly subject?: string | undefined
  /** Of a session that has not begun: the name of the agent that its edit is listed under. Default: `session`. */
  readonly agent?: string | undefined
}

export interface BranchOptions extends SessionEditOptions {
  /** A run of the session; its last one if not given. */
  readonly runId?: string | undefined
  /** The last event of that run that the branch shares; its last one if not given. */
  readonly atSeq?: number | undefined
}

const editing = {
  by: maybe(filledText),
  reason: maybe(filledText),
  owner: maybe(filledText),
  subject: maybe(filledText),
  agent: maybe(filledText),
  whenBusy: maybe(oneOf(['conflict', 'wait'])),
  mayFollow: maybe(anyFunction),
} as const
export const sessionEditOptions: Schema = fields<SessionEditOptions>(editing)
export const branchOptions: Schema = fields<BranchOptions>({
  ...editing,
  runId: maybe(filledText),
  atSeq: maybe(numberFrom(1, { whole: true })),
})

/** The agent of runs that are edits of their session: it talks to no model. */
export const sessionAgent: Agent = defineAgent({
  name: 'session',
  instructions: '',
  model: { provider: 'given', api: 'given', modelId: 'given', stream: () => EMPTY },
})

type Edit = Pick<
  NonNullable<StartCommand['sessionEdit']>,
  'edit' | 'messages' | 'count' | 'standing' | 'uncheckedFrom'
>

/** Thrown within the preparation of a start: by now there is nothing to edit. */
class NothingToEdit extends Error {}

/**
 * Records an edit of a session as a run of its own, which takes the next place in the session: of two processes that
 * edit it, or begin a run, one comes first, and the other edits what that left. All of it is one append. `undefined` if there is
 * nothing to edit.
 */
async function recordEdit(
  runs: RunRegistry,
  past: PastOptions,
  { by, reason, owner, subject, agent: given = sessionAgent.name }: SessionEditOptions,
  toEdit: (history: readonly Message[], past: Past) => Edit | undefined,
): Promise<RunState | undefined> {
  runs.requireOpen()
  const { parts } = runs
  const runId = parts.newId()
  const prepare = async (): Promise<{ command: StartCommand; context: undefined }> => {
    const found = await readPast(parts, past)
    const edit = toEdit(found.history ?? [], found)
    if (edit === undefined) throw new NothingToEdit()
    // Under the agent of the run before, so that whoever sees that one sees the edit.
    const before = found.parent && (await readStart(parts.ledger, found.parent.runId))
    const agent = before?.agent ?? given
    const { definition, limits } = sessionAgent
    const sessionEdit = { ...edit, ...omitUndefined({ by, reason }) }
    const own = { type: 'start' as const, runId, agent, definition, limits, retry: defaultRetryPolicy }
    const command = { ...own, ...omitUndefined({ subject, owner }), ...found, sessionEdit }
    return { command: deepFreeze(command), context: undefined }
  }
  // Whatever it is listed under: the process need not know that agent.
  const agents: AgentRegistry = { ...parts.agents, find: () => sessionAgent, inRun: () => agents }
  const driver = runs.ensureDriver(runId, agents)
  driver.start({ prepare, waits: true })
  try {
    await driver.result
  } catch (error) {
    if (error instanceof NothingToEdit) return undefined
    throw error
  }
  return await loadState(parts.ledger, runId)
}

/** Adds messages to the end of a session. */
export async function appendToSession(
  runs: RunRegistry,
  sessionId: string,
  given: InputMessage | readonly InputMessage[],
  options: SessionEditOptions,
): Promise<RunState | undefined> {
  const messages = parseMessages(Array.isArray(given) ? given : [given as InputMessage])
  if (messages.length === 0) return undefined
  return await recordEdit(runs, pastOf(sessionId, options), options, (history, { uncheckedFrom }) => {
    const fault = findPairingFault([...history, ...messages])
    if (fault === undefined) {
      const from = Math.min(uncheckedFrom ?? history.length, history.length)
      return { edit: 'append', messages, uncheckedFrom: from }
    }
    throw new ConfigurationError(
      `The messages cannot be added to session ${sessionId}: ${fault}. Keep each call together with its result, in the order of the calls.`,
    )
  })
}

/**
 * Takes messages from the end of a session: the last one, a call together with its result, or all of them. Answers those that were
 * taken.
 */
export async function takeFromSession(
  runs: RunRegistry,
  [sessionId, edit]: readonly [sessionId: string, edit: 'pop' | 'clear'],
  options: SessionEditOptions,
): Promise<readonly Message[]> {
  let taken: readonly Message[] = []
  const state = await recordEdit(runs, pastOf(sessionId, options), options, (history, { uncheckedFrom }) => {
    const last = history.at(-1)?.role === 'tool' ? 2 : 1
    const count = edit === 'clear' ? history.length : last
    if (history.length === 0) return undefined
    taken = history.slice(-count)
    const isLeft = uncheckedFrom !== undefined && uncheckedFrom < history.length - count
    return { edit, count, ...(isLeft && { uncheckedFrom }) }
  })
  return state ? taken : []
}

/** Ends a standing approval of a session; false if it has none of that call. */
export async function withdrawFromSession(
  runs: RunRegistry,
  [sessionId, toolCallId]: readonly [sessionId: string, toolCallId: string],
  options: SessionEditOptions,
): Promise<boolean> {
  const state = await recordEdit(runs, pastOf(sessionId, options), options, (_history, past) => {
    const given = past.standing?.find((each) => each.toolCallId === toolCallId)
    if (given === undefined) return undefined
    return {
      edit: 'withdraw',
      standing: given.toolCallId,
      ...omitUndefined({ uncheckedFrom: past.uncheckedFrom }),
    }
  })
  return state !== undefined
}

/** Begins a session with the history of another one, up to an event. */
export async function branchSession(
  runs: RunRegistry,
  [sessionId, branchId]: readonly [from: string, to: string],
  { runId, atSeq, ...options }: BranchOptions,
): Promise<void> {
  const { ledger } = runs.parts
  const last = runId ?? (await readLastRun(ledger, sessionId))?.runId
  if (last === undefined) {
    throw new ConfigurationError(
      `Session ${sessionId} has no run, so there is nothing to branch from. Begin a session of another name.`,
    )
  }
  const id = parseRunId(last)
  const start = id && (await readStart(ledger, id))
  if (start === undefined) throw new RunNotFoundError(last)
  if (start.sessionId !== sessionId) {
    throw new ConfigurationError(
      `Run ${last} is not of session ${sessionId}. Name one of its runs: session(…).runs() lists them.`,
    )
  }
  if (await readLastRun(ledger, branchId)) {
    throw new ConfigurationError(
      `Session ${branchId} has begun already, and cannot be a branch of ${sessionId}. Give the branch a new name.`,
    )
  }
  const from = { runId: last, ...omitUndefined({ atSeq }) }
  await options.mayFollow?.(start.runId)
  await recordEdit(
    runs,
    { sessionId: branchId, from },
    options,
    (_history, { sessionPlace, uncheckedFrom }) => {
      if (sessionPlace === 1) return { edit: 'branch', ...omitUndefined({ uncheckedFrom }) }
      throw new ConfigurationError(
        `Session ${branchId} was begun by another process in this moment. Give the branch a new name.`,
      )
    },
  )
}

function pastOf(sessionId: string, { whenBusy, mayFollow }: SessionEditOptions): PastOptions {
  return { sessionId, ...omitUndefined({ whenBusy, mayFollow }) }
}
