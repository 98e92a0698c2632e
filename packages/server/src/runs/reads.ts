import type { Agent, Ledger, RunId, RunState } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { evolve, isSuspended, toTranscript } from '@tallystick/core/machine'
import { caughtUp, followChanges } from '@tallystick/core/store-kit'
import { type ListedRun, readRunSummary } from '@tallystick/ledger'
import { isVisible, type Principal, requireVisible } from '../http/principal.ts'
import { RefusedRequestError } from '../http/problem.ts'
import type { Routes } from '../http/routes.ts'
import {
  listAgents,
  respondJson,
  parseNumber,
  parsePageSize,
  requireAgent,
  type Served,
} from '../http/served.ts'
import { follow, idle } from '../stream/follow.ts'
import { toPastRunView, readRunView, readState } from './view.ts'

/** Waits until a run stops, whichever process drives it, or until the time is over, and returns its state then. */
async function awaitStop(
  { reads, stream }: Served,
  state: RunState,
  waitMs: number,
  signal: AbortSignal,
): Promise<RunState> {
  if (hasStopped(state) || waitMs === 0) return state
  const over = new AbortController()
  const stopTimer = stream.clock.schedule(waitMs, () => over.abort())
  const changes = followChanges(reads.forReader(), state.runId, { after: state.seq })
  let now = state
  try {
    for await (const event of follow(changes, stream, AbortSignal.any([signal, over.signal]))) {
      if (event === idle) continue
      if (event !== caughtUp) now = evolve(now, event)
      // Only after the last recorded event: what follows at once may show that the run does not wait.
      else if (hasStopped(now)) break
    }
  } finally {
    stopTimer()
  }
  return now
}

function hasStopped(state: RunState): boolean {
  return state.phase === 'done' || isSuspended(state)
}

/** The longest wait for a result: proxies give a request up after a minute. */
const maxWaitMs = 50_000

/** The fields of a run as its callers see it. */
const runFields = ['runId', 'status', 'text', 'seq', 'pendingApprovals']

/** Adds the routes that read a run: its state, transcript and result. */
export function addReads(routes: Routes): void {
  const { served } = routes
  const { ledger } = served
  routes.get(
    '/runs/:run',
    {
      operationId: 'readRun',
      summary: 'The status, answer and totals of a run, and what it waits for.',
      parameters: ['at'],
      answers: { 200: 'The run.' },
      fields: runFields,
    },
    async ({ runId, req }) => {
      const at = parseNumber('at', req.query('at'))
      const state = await readState(ledger, runId, at)
      const isPast = at !== undefined && (await ledger.head(runId))?.seq !== state.seq
      return respondJson(isPast ? toPastRunView(state) : await readRunView(ledger, state))
    },
  )
  routes.get(
    '/runs/:run/transcript',
    {
      operationId: 'readTranscript',
      summary: 'The messages that the model of a run is shown.',
      parameters: ['at'],
      answers: { 200: 'The messages.' },
      fields: ['runId', 'seq', 'messages'],
    },
    async ({ runId, req }) => {
      const state = await readState(ledger, runId, parseNumber('at', req.query('at')))
      return respondJson({ runId, seq: state.seq, messages: toTranscript(state) })
    },
  )
  routes.get(
    '/runs/:run/result',
    {
      operationId: 'awaitResult',
      summary: 'Waits until a run has stopped.',
      parameters: ['waitMs'],
      answers: {
        200: 'It has stopped: it is done, or waits for a command.',
        202: 'It has not stopped yet.',
      },
      fields: runFields,
    },
    async ({ runId, req }) => {
      const waitMs = Math.min(maxWaitMs, parseNumber('waitMs', req.query('waitMs')) ?? 0)
      const state = await awaitStop(served, await readState(ledger, runId), waitMs, req.raw.signal)
      const view = await readRunView(ledger, state)
      return hasStopped(state) ? respondJson(view) : respondJson(view, 202, { 'retry-after': '1' })
    },
  )
}

/** Adds the routes of agents: which ones a caller can start. */
export function addAgents(routes: Routes): void {
  const { served } = routes
  routes.get(
    '/agents',
    {
      operationId: 'listAgents',
      summary: 'The agents that the caller can start.',
      answers: { 200: 'The agents, with their tools and limits.' },
      fields: ['agents'],
    },
    ({ principal }) => respondJson({ agents: listAgents(served, principal).map(toAgentView) }),
  )
  routes.get(
    '/agents/:agent',
    {
      operationId: 'readAgent',
      summary: 'One agent.',
      answers: { 200: 'The agent, with its tools and limits.' },
      fields: ['name', 'tools', 'limits'],
    },
    ({ principal, req }) => respondJson(toAgentView(requireAgent(served, principal, req.param('agent')))),
  )
}

/** An agent as callers see it. Its instructions and settings stay with the application. */
function toAgentView({ name, description, tools, limits }: Agent<unknown>): object {
  return {
    name,
    ...omitUndefined({ description }),
    tools: tools.map((tool) => ({ name: tool.name, description: tool.description, effect: tool.effect })),
    limits,
  }
}

/** For a session that does not exist, or that is another caller's. */
export function createSessionNotFoundError(sessionId: string): RefusedRequestError {
  return new RefusedRequestError(
    404,
    'session_not_found',
    `There is no session ${sessionId.slice(0, 80)}. GET /runs lists the runs that you see, with their sessions.`,
  )
}

/** Adds conversations: pages of the runs of a session, the last first, and the history with which its next run begins. */
export function addSessions(routes: Routes): void {
  const { ledger } = routes.served
  routes.get(
    '/sessions/:session',
    {
      operationId: 'readSession',
      summary:
        'A page of the runs of a conversation, the last first. The first page has the history with which its next run begins, the last one no `before`.',
      parameters: ['before', 'limit'],
      answers: { 200: 'The page.' },
      fields: ['sessionId', 'runs'],
    },
    async ({ principal, req }) => {
      const sessionId = req.param('session')
      const limit = parsePageSize(req.query('limit'))
      const given = req.query('before')
      const before = given === undefined ? undefined : await requireVisible(ledger, principal, given)
      const place = { sessionId, ...omitUndefined({ before }) }
      const page = await readSessionPage(ledger, principal, limit, place)
      if (before !== undefined) return respondJson({ sessionId, ...page })
      const [last] = page.runs
      if (last === undefined) {
        throw createSessionNotFoundError(sessionId)
      }
      const state = await readState(ledger, last.runId)
      const history = { runId: state.runId, seq: state.seq, messages: toTranscript(state) }
      return respondJson({ sessionId, ...page, history })
    },
  )
}

/** A page of the runs of a session, and where the next page begins, if a run that the principal sees is left. */
async function readSessionPage(
  ledger: Ledger,
  principal: Principal,
  limit: number,
  place: { readonly sessionId: string; readonly before?: RunId },
): Promise<{ readonly runs: readonly ListedRun[]; readonly before?: RunId }> {
  const runs: ListedRun[] = []
  for await (const { runId } of ledger.runs({ ...place, limit: limit + 1 })) {
    // The history of a run comes from the runs before it: without the last one, none is shown.
    if (!(await isVisible(ledger, principal, runId))) break
    const last = runs.at(-1)
    if (last && runs.length === limit) return { runs, before: last.runId }
    runs.push(await readRunSummary(ledger, runId))
  }
  return { runs }
}
