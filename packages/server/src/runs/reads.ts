import { type Agent, type Ledger, type RunId, RunNotFoundError, type RunState } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import { evolve, isSuspended, transcript } from '@tallystick/core/machine'
import { caughtUp, changesOf } from '@tallystick/core/store-kit'
import { parseRunId } from '@tallystick/core/vocabulary'
import { type ListedRun, runSummaries, runSummary, type SummaryFilter } from '@tallystick/ledger'
import type { Context, Hono } from 'hono'
import type { PlacedList, SealedPlaces } from '../http/cursors.ts'
import { isIncluded, isVisible, type Principal, requireVisible } from '../http/principal.ts'
import { malformed, RefusedRequestError } from '../http/problem.ts'
import {
  respondJson,
  parseNumber,
  parsePageSize,
  type RequestScope,
  requireAgent,
  type Served,
} from '../http/served.ts'
import type { StreamHost } from '../stream/followed-stream.ts'
import type { SharedReads } from '../stream/shared-reads.ts'
import { toPastRunView, readRunView, readState, toTranscriptView } from './view.ts'
import { type Operations } from '../http/openapi.ts'

/** The state of a run after a wait, and whether it has stopped: done, or suspended. */
export interface Awaited {
  readonly state: RunState
  readonly isStopped: boolean
}

/** Waits until a run stops, whichever process drives it, or until the time is over. */
async function awaitStop(
  reads: SharedReads,
  state: RunState,
  { waitMs, stream, signal }: { waitMs: number; stream: StreamHost; signal: AbortSignal },
): Promise<Awaited> {
  if (hasStopped(state) || waitMs === 0) return { state, isStopped: hasStopped(state) }
  const changes = changesOf(reads.forReader(), state.runId, { after: state.seq })
  const end = (): void => void changes.return()
  const stopTimer = stream.clock.schedule(waitMs, end)
  stream.stopping.addEventListener('abort', end)
  signal.addEventListener('abort', end)
  let now = state
  try {
    for await (const event of changes) {
      if (event !== caughtUp) now = evolve(now, event)
      // Only after the last recorded event: what follows at once may show that the run does not wait.
      else if (hasStopped(now)) break
    }
  } finally {
    stopTimer()
    stream.stopping.removeEventListener('abort', end)
    signal.removeEventListener('abort', end)
  }
  return { state: now, isStopped: hasStopped(now) }
}

function hasStopped(state: RunState): boolean {
  return state.phase === 'done' || isSuspended(state)
}

/** The most runs that one page looks at, for a principal that sees few of them. */
const maxLooked = 1_000
/** The longest wait for a result: proxies give a request up after a minute. */
const maxWaitMs = 50_000

const listed = ['done', 'failed', 'suspended', 'unfinished', 'unreadable'] as const

/** Adds the routes that read runs: the list, and the state, transcript and result of one. */
export function addReads(app: Hono<RequestScope>, served: Served): void {
  const { ledger } = served
  app.get('/runs', async (context) => {
    const { before, limit, ...filter } = readAskedPage(context)
    const list: PlacedList = {
      of: 'runs',
      principal: context.get('principal'),
      sessionId: filter.sessionId,
    }
    const begin = before === undefined ? undefined : await findBegin(served, list, before)
    return respondJson(await readListPage(served, list, { limit, filter: { ...filter, ...begin } }))
  })
  app.get('/runs/:run', async (context) => {
    const runId = await requireVisible(ledger, context.get('principal'), context.req.param('run'))
    const at = parseNumber('at', context.req.query('at'))
    const state = await readState(ledger, runId, at)
    const isPast = at !== undefined && (await ledger.head(runId))?.seq !== state.seq
    return respondJson(isPast ? toPastRunView(state) : await readRunView(ledger, state))
  })
  app.get('/runs/:run/transcript', async (context) => {
    const runId = await requireVisible(ledger, context.get('principal'), context.req.param('run'))
    const state = await readState(ledger, runId, parseNumber('at', context.req.query('at')))
    return respondJson(toTranscriptView(state))
  })
  app.get('/runs/:run/result', async (context) => {
    const runId = await requireVisible(ledger, context.get('principal'), context.req.param('run'))
    const waitMs = Math.min(maxWaitMs, parseNumber('waitMs', context.req.query('waitMs')) ?? 0)
    const state = await readState(ledger, runId)
    const stopped = await awaitStop(served.reads, state, {
      waitMs,
      stream: served.stream,
      signal: context.req.raw.signal,
    })
    const view = await readRunView(ledger, stopped.state)
    return stopped.isStopped ? respondJson(view) : respondJson(view, 202, { 'retry-after': '1' })
  })
}

/** The filters and the place of a list as a caller asks for them. */
interface AskedPage extends Pick<SummaryFilter, 'statuses' | 'agent' | 'sessionId' | 'since'> {
  readonly limit: number
  readonly before?: string
}

function readAskedPage({ req }: Context): AskedPage {
  const statuses = req.queries('status')
  const unknown = statuses?.find((status) => !(listed as readonly string[]).includes(status))
  if (unknown !== undefined) {
    throw malformed(`status has to be one of ${listed.join(', ')}.`)
  }
  return {
    limit: parsePageSize(req.query('limit')),
    ...omitUndefined({
      statuses: statuses as SummaryFilter['statuses'],
      agent: req.query('agent'),
      sessionId: req.query('sessionId'),
      since: parseNumber('since', req.query('since')),
      before: req.query('before'),
    }),
  }
}

/** The beginning of a page: after a run that the caller sees, or at a place from an earlier page. */
interface Begin {
  readonly before: RunId
}

async function findBegin({ ledger, places }: Served, list: PlacedList, text: string): Promise<Begin> {
  // A run id that the caller does not see would say that its run exists.
  if (parseRunId(text) !== undefined) return { before: await requireVisible(ledger, list.principal, text) }
  const before = parseRunId((await places.open(text, list)) ?? '')
  if (before === undefined || !(await isPlaceOf(ledger, before, list))) throw strangePlace()
  return { before }
}

/** Returns true if the ledger can continue after the run of a place: refusing it there would name the run. */
async function isPlaceOf(ledger: Ledger, runId: RunId, { sessionId }: PlacedList): Promise<boolean> {
  try {
    for await (const _ of ledger.runs({ before: runId, limit: 1, ...omitUndefined({ sessionId }) })) break
    return true
  } catch (error) {
    if (error instanceof RunNotFoundError) return false
    throw error
  }
}

function strangePlace(): RefusedRequestError {
  return malformed(
    'before has to be a run that you see, or what the last page of this list gave you. Ask for the first page again.',
  )
}

interface Page {
  readonly runs: readonly ListedRun[]
  readonly before?: string
}

/** A page of the runs that a principal sees, and where the next page begins. It may hold fewer than asked for, or none. */
async function readListPage(
  { ledger, places }: { readonly ledger: Ledger; readonly places: SealedPlaces },
  list: PlacedList,
  { limit, filter }: { readonly limit: number; readonly filter: SummaryFilter },
): Promise<Page> {
  const runs: ListedRun[] = []
  let looked = 0
  for await (const run of runSummaries(ledger, filter)) {
    looked++
    const isSeen = await isVisible(ledger, list.principal, run.runId)
    if (isSeen) runs.push(run)
    if (runs.length < limit && looked < maxLooked) continue
    return { runs, before: isSeen ? run.runId : await places.seal(run.runId, list) }
  }
  return { runs }
}

/** Adds the routes of agents: which ones a caller can start. */
export function addAgents(app: Hono<RequestScope>, served: Served): void {
  app.get('/agents', (context) => {
    const { sees } = context.get('principal')
    const isSeen = (name: string): boolean => sees === 'everything' || isIncluded(sees.agents, name)
    const agents = [...served.agents.values()].filter(({ name }) => isSeen(name))
    return respondJson({ agents: agents.map(toAgentView) })
  })
  app.get('/agents/:agent', (context) =>
    respondJson(toAgentView(requireAgent(served, context.get('principal'), context.req.param('agent')))),
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

/** Adds conversations: pages of the runs of a session, the last first, and the history with which its next run begins. */
export function addSessions(app: Hono<RequestScope>, { ledger }: Served): void {
  app.get('/sessions/:session', async (context) => {
    const [principal, sessionId] = [context.get('principal'), context.req.param('session')]
    const limit = parsePageSize(context.req.query('limit'))
    const before = context.req.query('before')
    if (before !== undefined) {
      await requireVisible(ledger, principal, before)
      return respondJson({
        sessionId,
        ...(await readSessionPage(ledger, principal, { sessionId, limit, before: before as RunId })),
      })
    }
    const { runs, ...more } = await readSessionPage(ledger, principal, { sessionId, limit })
    const [last] = runs
    if (last === undefined) {
      throw new RefusedRequestError(
        404,
        'session_not_found',
        `There is no session ${sessionId.slice(0, 80)}. GET /runs lists the runs that you see, with their sessions.`,
      )
    }
    const state = await readState(ledger, last.runId)
    const history = { runId: state.runId, seq: state.seq, messages: transcript(state) }
    return respondJson({ sessionId, runs, ...more, history })
  })
}

interface SessionPage {
  readonly sessionId: string
  readonly limit: number
  readonly before?: RunId
}

/** A page of the runs of a session, and where the next page begins, if a run that the principal sees is left. */
async function readSessionPage(
  ledger: Ledger,
  principal: Principal,
  { limit, ...place }: SessionPage,
): Promise<{ readonly runs: readonly ListedRun[]; readonly before?: RunId }> {
  const runs: ListedRun[] = []
  for await (const { runId } of ledger.runs({ ...place, limit: limit + 1 })) {
    // The history of a run is that of the runs before it: without the last one, none is shown.
    if (!(await isVisible(ledger, principal, runId))) break
    const last = runs.at(-1)
    if (last && runs.length === limit) return { runs, before: last.runId }
    runs.push(await runSummary(ledger, runId))
  }
  return { runs }
}

/** The routes of `addReads`, `addAgents` and `addSessions`. */
export const readOperations: Operations = {
  'GET /agents': {
    operationId: 'listAgents',
    summary: 'The agents that the caller can start.',
    answers: { 200: 'The agents, with their tools and limits.' },
    fields: ['agents'],
  },
  'GET /agents/:agent': {
    operationId: 'readAgent',
    summary: 'One agent.',
    answers: { 200: 'The agent, with its tools and limits.' },
    fields: ['name', 'tools', 'limits'],
  },
  'GET /runs': {
    operationId: 'listRuns',
    summary: 'A page of the runs that the caller sees, newest first. The last page has no `before`.',
    parameters: ['status', 'agent', 'sessionId', 'since', 'before', 'limit'],
    answers: { 200: 'The page.' },
    fields: ['runs'],
  },
  'GET /runs/:run': {
    operationId: 'readRun',
    summary: 'The status, answer and totals of a run, and what it waits for.',
    parameters: ['at'],
    answers: { 200: 'The run.' },
    fields: ['runId', 'status', 'text', 'seq', 'pendingApprovals'],
  },
  'GET /runs/:run/transcript': {
    operationId: 'readTranscript',
    summary: 'The messages that the model of a run is shown.',
    parameters: ['at'],
    answers: { 200: 'The messages.' },
    fields: ['runId', 'seq', 'messages'],
  },
  'GET /runs/:run/result': {
    operationId: 'awaitResult',
    summary: 'Waits until a run has stopped.',
    parameters: ['waitMs'],
    answers: { 200: 'It has stopped: it is done, or waits for a command.', 202: 'It has not stopped yet.' },
    fields: ['runId', 'status', 'text', 'seq', 'pendingApprovals'],
  },
  'GET /sessions/:session': {
    operationId: 'readSession',
    summary:
      'A page of the runs of a conversation, the last first. The first page has the history with which its next run begins, the last one no `before`.',
    parameters: ['before', 'limit'],
    answers: { 200: 'The page.' },
    fields: ['sessionId', 'runs'],
  },
}
