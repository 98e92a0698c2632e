import type { Agent, Ledger, RunId, RunState } from '@tallystick/core'
import {
  computeRequestDigest,
  findDrivenAgent,
  isRunDriven,
  listReachableAgents,
  omitUndefined,
  readStart,
  readSteps,
  toShownEvent,
} from '@tallystick/core/internal'
import { evolve, serializeState } from '@tallystick/core/machine'
import type { EventOf } from '@tallystick/core/vocabulary'
import type {
  RecordPage,
  RegressionFiles,
  ReplayAnswer,
  RunNode,
  TurnRequest,
  SignedUpTo,
  Verification,
} from '@tallystick/inspector'
import {
  type CheckpointFault,
  foldTo,
  readRecord,
  readRunSummary,
  rebuildRequest,
  verifyCheckpoints,
  verifyRun,
} from '@tallystick/ledger'
import type { RunsDiff, RunTail } from '@tallystick/replay'
import * as z from 'zod'
import { requireVisible } from '../http/principal.ts'
import { createMalformedError, RefusedRequestError } from '../http/problem.ts'
import type { Routes } from '../http/routes.ts'
import { isPermitted, parseNumber, requirePermission, respondJson, type Served } from '../http/served.ts'
import { toRowStatus } from './list.ts'
import { readState } from './view.ts'

/** Loaded at the first request that needs it: a server that nobody inspects, and one that has no files, does without. */
const loadReplay = () => import('@tallystick/replay')

const definitions = ['today', 'recorded'] as const
type Definitions = (typeof definitions)[number]

const replayBody = z.strictObject({ definitions: z.exactOptional(z.enum(definitions)) })

/** Adds the routes that look into one run: its family, its turns, what a model saw, its record, and whether it comes out again. */
export function addInspection(routes: Routes): void {
  const { served } = routes
  const { ledger } = served
  routes.get(
    '/runs/:run/tree',
    {
      operationId: 'readTree',
      summary: 'A run and its child runs, each with its own: 1,000 at most.',
      answers: { 200: 'The tree.' },
      fields: ['runId', 'agent', 'status', 'children'],
    },
    async ({ runId }) => {
      return respondJson(await readTree(ledger, runId, new Set()))
    },
  )
  routes.get(
    '/runs/:run/steps',
    {
      operationId: 'readSteps',
      summary: 'The turns of a run: what each came to, took and cost.',
      answers: { 200: 'The turns.' },
      fields: ['runId', 'steps'],
    },
    async ({ runId }) => {
      return respondJson({ runId, steps: await readSteps(ledger, runId) })
    },
  )
  routes.get(
    '/runs/:run/request',
    {
      operationId: 'readRequest',
      summary:
        'The request that the model of a run got in a turn, made again from the record: `matches` says whether it has the recorded digest.',
      parameters: ['turn'],
      answers: { 200: 'The request.' },
      fields: ['runId', 'turn', 'request', 'matches'],
    },
    async ({ runId, req }) => {
      return respondJson(await readRequest(ledger, runId, parseNumber('turn', req.query('turn'))))
    },
  )
  routes.get(
    '/runs/:run/explain',
    {
      operationId: 'explainRequest',
      summary: 'Which events each part of the request of a turn came from, and its tokens and cost.',
      parameters: ['turn'],
      answers: { 200: 'The parts.' },
      fields: ['runId', 'turn', 'items', 'attempts'],
    },
    async ({ runId, req }) => {
      const { turn } = await findModelCall(ledger, runId, parseNumber('turn', req.query('turn')))
      const { explain } = await loadReplay()
      return respondJson(await explain(ledger, runId, turn))
    },
  )
  routes.get(
    '/runs/:run/verify',
    {
      operationId: 'verifyRun',
      summary:
        'Whether the record of a run is as it was written and, for who may `inspect`, up to which event signed checkpoints cover it.',
      answers: { 200: 'The verdict.' },
      fields: ['runId', 'ok', 'events'],
    },
    async ({ principal, runId }) => {
      // It reads all that was ever signed, so it is not for everyone.
      const mayAsk = isPermitted(principal, 'inspect')
      const [verdict, signed] = await Promise.all([
        verifyRun(ledger, runId),
        mayAsk ? readSigned(served, runId) : undefined,
      ])
      return respondJson({ ...verdict, ...omitUndefined({ signed }) } satisfies Verification)
    },
  )
  routes.get(
    '/runs/:run/diff',
    {
      operationId: 'diffRuns',
      summary: 'Where two runs part, and what each did from there on.',
      parameters: ['with'],
      answers: { 200: 'The difference.' },
      fields: ['shared', 'differences', 'left', 'right'],
    },
    async ({ principal, runId: left, req }) => {
      const other = req.query('with')
      if (other === undefined || other === '') {
        throw createMalformedError('with is missing. Give the id of the run to compare this one with.')
      }
      const right = await requireVisible(ledger, principal, other)
      const { diffRuns } = await loadReplay()
      return respondJson(toShownDiff(await diffRuns(ledger, left, right)))
    },
  )
  routes.get(
    '/runs/:run/state',
    {
      operationId: 'readState',
      summary:
        'The whole state of a run after an event, as the runtime has it. Needs the permission `inspect`.',
      parameters: ['at'],
      answers: { 200: 'The state.' },
      fields: ['runId', 'seq', 'state'],
    },
    async ({ principal, runId, req }) => {
      requirePermission(principal, 'inspect')
      const state = await readState(ledger, runId, parseNumber('at', req.query('at')))
      return respondJson({ runId, seq: state.seq, state: serializeState(state) })
    },
  )
  routes.get(
    '/runs/:run/record',
    {
      operationId: 'readRecord',
      summary:
        'The rows of a run as the ledger has them, with what hashes and commitments cover; the last page has no `after`. Needs the permission `inspect`.',
      parameters: ['after'],
      answers: { 200: 'The rows.' },
      fields: ['rows'],
    },
    async ({ principal, runId, req }) => {
      requirePermission(principal, 'inspect')
      return respondJson(await readRecordPage(ledger, runId, parseNumber('after', req.query('after')) ?? 0))
    },
  )
  routes.get(
    '/runs/:run/regression',
    {
      operationId: 'exportRegression',
      summary:
        'A run as a test for vitest, and the export that goes beside it, with secrets masked. Needs the permission `inspect`.',
      parameters: ['definitions'],
      answers: { 200: 'The texts of both files.' },
      fields: ['runId', 'events', 'redacted', 'test', 'fixture', 'fixtureName'],
    },
    async ({ principal, runId, req }) => {
      requirePermission(principal, 'inspect')
      const asked = parseDefinitions(req.query('definitions'))
      const { formatRegression } = await loadReplay()
      return respondJson(
        (await formatRegression(ledger, runId, {
          file: `run-${runId.slice(-8)}.spec.ts`,
          agents: { from: './tallystick.config.ts' },
          definitions: asked,
        })) satisfies RegressionFiles,
      )
    },
  )
  routes.post(
    '/runs/:run/replay',
    {
      operationId: 'replayRun',
      summary:
        'Drives a run again with its recorded replies and results, by the agents of this process, and reports the first event that differs.',
      permission: 'replay',
      body: { name: 'Replay', schema: replayBody, example: {} },
      answers: { 200: 'The report.' },
      fields: ['runId', 'events'],
    },
    async ({ runId, readBody }) => {
      const { definitions: asked = 'today' } = await readBody()
      const { replayRun } = await loadReplay()
      const context = await makeContext(served, runId)
      return respondJson(
        (await replayRun(ledger, runId, (name) => requireKnownAgent(served, name), {
          definitions: asked,
          ...omitUndefined({ context }),
        })) satisfies ReplayAnswer,
      )
    },
  )
}

/** Up to which event signed checkpoints cover a run, if there are any. */
async function readSigned(
  { ledger, checkpoints, stream }: Served,
  runId: RunId,
): Promise<SignedUpTo | undefined> {
  if (checkpoints === undefined) return undefined
  try {
    const { events, origin, broken } = await verifyCheckpoints(ledger, { ...checkpoints, runId })
    const [fault] = broken
    return { seq: events, origin, ...(fault && { broken: toShownFault(fault) }) }
  } catch (error) {
    stream.report(error, 'The signed checkpoints could not be read')
    const broken = { what: 'file', expected: 'checkpoints', found: 'none that can be read' }
    return { seq: 0, origin: checkpoints.origin ?? '', broken }
  }
}

/** Without the path of the file, which is nothing for callers. */
function toShownFault({ seq, what, expected, found }: CheckpointFault): NonNullable<SignedUpTo['broken']> {
  return { what, expected, found: what === 'file' ? 'a damaged file' : found, ...omitUndefined({ seq }) }
}

/** The most runs of a tree. */
const maxNodes = 1_000

/** Reads a run and those below it, unless they were seen: only a forged ledger has a run below itself. */
async function readTree(ledger: Ledger, runId: RunId, seen: Set<RunId>, call?: ChildCall): Promise<RunNode> {
  seen.add(runId)
  const run = await readRunSummary(ledger, runId)
  if (run.status === 'unreadable') {
    return { ...{ runId, agent: '', status: 'unreadable', startedAt: 0, lastAt: 0, tokens: 0, children: [] } }
  }
  const { agent, status, startedAt, lastAt, usage, costUsd } = run
  const tokens = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0)
  const isDriven = status === 'unfinished' && (await isRunDriven(ledger, runId))
  const children: RunNode[] = []
  const calls = run.childRunIds.length === 0 ? new Map<RunId, ChildCall>() : await readCalls(ledger, runId)
  for (const child of run.childRunIds) {
    if (seen.has(child) || seen.size >= maxNodes) continue
    // A call may have started before its child run was on record; a fork has no child runs of its source.
    const start = (await ledger.head(child)) && (await readStart(ledger, child))
    if (start?.parent?.runId !== runId) continue
    children.push(await readTree(ledger, child, seen, calls.get(child)))
  }
  return {
    ...{ runId, agent, status: toRowStatus(status, isDriven), startedAt, lastAt, tokens },
    ...omitUndefined({ costUsd }),
    ...call,
    children,
  }
}

/** The call whose work a child run does, and what it was granted for that. */
type ChildCall = Pick<RunNode, 'toolCallId' | 'grant'>

/** The call that each child run of a run does the work of. */
async function readCalls(ledger: Ledger, runId: RunId): Promise<ReadonlyMap<RunId, ChildCall>> {
  const calls = new Map<RunId, ChildCall>()
  for await (const event of ledger.find({ runId, types: ['tool_started'] })) {
    if (event.type !== 'tool_started' || event.child === undefined || calls.has(event.child)) continue
    const { toolCallId, grant } = event
    calls.set(event.child, { toolCallId, ...omitUndefined({ grant }) })
  }
  return calls
}

/** Finds the last attempt of the model call of a turn; without a turn, of the run. */
async function findModelCall(
  ledger: Ledger,
  runId: RunId,
  turn: number | undefined,
): Promise<EventOf<'model_call_started'>> {
  let found: EventOf<'model_call_started'> | undefined
  const query = { runId, types: ['model_call_started'] as const, ...omitUndefined({ turn }) }
  for await (const event of ledger.find(query)) if (event.type === 'model_call_started') found = event
  if (found) return found
  const which = turn === undefined ? 'no turn' : `no turn ${turn}`
  throw new RefusedRequestError(
    404,
    'turn_not_found',
    `The run has ${which} in which a model was asked. GET /runs/${runId}/steps lists its turns.`,
  )
}

async function readRequest(ledger: Ledger, runId: RunId, turn: number | undefined): Promise<TurnRequest> {
  const started = await findModelCall(ledger, runId, turn)
  const before = await foldTo(ledger, runId, started.seq - 1)
  const { seq, attempt, requestDigest } = started
  return {
    ...rebuildRequest(evolve(before, started)),
    ...{ runId, turn: started.turn, attempt, seq, requestDigest },
    matches: digestAgain(before, started) === requestDigest,
  }
}

/** Where content was removed there may be nothing to digest. */
function digestAgain(before: RunState, started: EventOf<'model_call_started'>): string | undefined {
  try {
    return computeRequestDigest(before, started)
  } catch {
    return undefined
  }
}

/** A difference without what `outputStream` did not show. */
function toShownDiff({ differences, left, right, ...more }: RunsDiff): RunsDiff {
  const show = (tail: RunTail): RunTail => ({ ...tail, events: tail.events.map(toShownEvent) })
  return {
    ...more,
    differences: differences.filter(({ path }) => !/^written\b/.test(path)),
    left: show(left),
    right: show(right),
  }
}

async function readRecordPage(ledger: Ledger, runId: RunId, after: number): Promise<RecordPage> {
  const rows = await readRecord(ledger, runId, { after })
  const last = rows.at(-1)?.seq
  const head = await ledger.head(runId)
  const isMore = last !== undefined && head !== undefined && last < head.seq
  return { rows: rows.map((row) => ({ ...row, run_id: runId })), ...(isMore && { after: last }) }
}

function parseDefinitions(text: string | undefined): Definitions {
  const found = definitions.find((each) => each === (text ?? 'today'))
  if (found) return found
  throw createMalformedError(`definitions has to be one of ${definitions.join(', ')}.`)
}

/** An agent as the runtime drives it, with its rules. */
function requireKnownAgent({ runtime, agents }: Served, name: string): Agent<unknown> {
  const known = [...agents.values()].flatMap(listReachableAgents).find((agent) => agent.name === name)
  const agent = findDrivenAgent(runtime, name) ?? known
  if (agent) return agent
  throw new RefusedRequestError(
    409,
    'agent_unknown',
    `The run was recorded with an agent that this process does not have: ${name.slice(0, 80)}. Ask a process that has it.`,
  )
}

/** The context of a run, as it is made when the run is driven. */
async function makeContext({ ledger, context }: Served, runId: RunId): Promise<unknown> {
  const start = await readStart(ledger, runId)
  if (start?.withContext !== true || context === undefined) return undefined
  const { agent, sessionId, subject, owner, labels, parent } = start
  return await context.contextFor({
    ...{ runId, agent },
    ...omitUndefined({ sessionId, subject, owner, labels, parent }),
  })
}
