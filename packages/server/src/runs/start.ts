import type { Agent, Ledger, Run, RunId, RunInput, RunOptions, RuntimeEvent } from '@tallystick/core'
import { omitUndefined, readStart, untilBegun } from '@tallystick/core/internal'
import { limitNames } from '@tallystick/core/vocabulary'
import type { Hono } from 'hono'
import { firstValueFrom } from 'rxjs'
import {
  isIncluded,
  isVisible,
  type Principal,
  requireVisible,
  type Scope,
  canSee,
  readStartHeaders,
  type StartHeaders,
} from '../http/principal.ts'
import { RefusedRequestError } from '../http/problem.ts'
import { readBody } from '../http/request.ts'
import {
  respondJson,
  type RequestScope,
  requireAgent,
  requirePermission,
  type Served,
} from '../http/served.ts'
import { forkBody, startBody, type StartBody } from './schema.ts'
import { type Operations, startParameters } from '../http/openapi.ts'

/**
 * Resolves with the next event of a run that this process drives. A failure before that event is one of the request;
 * a later one is reported, since no request waits for it.
 */
export async function awaitFirstEvent(
  { liveTexts, stream: { report } }: Pick<Served, 'liveTexts' | 'stream'>,
  run: Run,
  after: number,
): Promise<RuntimeEvent> {
  let isOnRecord = false
  liveTexts?.add(run)
  run.result.catch((error: unknown) => {
    if (isOnRecord) report(error, `Run ${run.id} failed and is no longer driven here`)
  })
  const event = await firstValueFrom(run.after(after).events$)
  isOnRecord = true
  return event
}

/** Adds the routes that begin a run: a start, and a fork of another run. */
export function addStarts(app: Hono<RequestScope>, served: Served): void {
  const { runtime, ledger } = served
  app.post('/runs', async (context) => {
    const principal = context.get('principal')
    requirePermission(principal, 'start')
    const body = await readBody(context.req.raw, startBody, served.body)
    const run = await startRun(served, principal, body, readStartHeaders(context.req.raw, principal))
    return respondStarted(served, run)
  })
  app.post('/runs/:run/fork', async (context) => {
    const principal = context.get('principal')
    requirePermission(principal, 'fork')
    const source = await requireVisible(ledger, principal, context.req.param('run'))
    const { atSeq, input, writes, sessionId, reason } = await readBody(context.req.raw, forkBody, served.body)
    const first = await readStart(ledger, source)
    requireSeen(principal, { agent: first?.agent ?? '', sessionId, subject: first?.subject })
    const edit = input === undefined ? undefined : { input, by: principal.name, ...omitUndefined({ reason }) }
    const run = runtime.fork(source, {
      atSeq,
      context: served.context,
      owner: principal.name,
      mayFollow: requireOwnSession(ledger, principal),
      ...omitUndefined({ edit, writes, sessionId }),
    })
    await awaitFirstEvent(served, run, 0)
    return respondStarted(served, run)
  })
}

/** The order to start a run: the fields of a body, and model settings. */
export interface RunOrder
  extends Omit<StartBody, 'input'>, Pick<RunOptions, 'modelSettings' | 'toolChoice' | 'parallelToolCalls'> {
  readonly input: RunInput
  /** The id of the message that the run answers. */
  readonly messageId?: string
}

/** Starts a run for a principal, and resolves when it is on record. Throws if the principal could not see the run. */
export async function startRun(
  served: Served,
  principal: Principal,
  body: RunOrder,
  { idempotencyKey, traceId }: StartHeaders,
): Promise<Run> {
  const { runtime, ledger } = served
  const { input, sessionId, whenBusy, from, tags, metadata, deadline } = body
  const { modelSettings, toolChoice, parallelToolCalls } = body
  const agent = requireAgent(served, principal, body.agent)
  const subject = body.subject ?? findOnlySubject(principal)
  requireSeen(principal, { agent: agent.name, sessionId, subject })
  requireWithin(agent, body.limits)
  if (from) await requireVisible(ledger, principal, from.runId)
  const run: Run = runtime.run(agent, input, {
    context: served.context,
    owner: principal.name,
    mayFollow: requireOwnSession(ledger, principal),
    ...omitUndefined({ sessionId, whenBusy, from, subject, limits: body.limits, inputId: body.messageId }),
    ...omitUndefined({ tags, metadata, deadline, idempotencyKey, traceId }),
    ...omitUndefined({ modelSettings, toolChoice, parallelToolCalls }),
  })
  await awaitFirstEvent(served, run, 0)
  if (idempotencyKey !== undefined) {
    // A run that its caller does not see answers it nothing, whatever the key was made of.
    if (!(await isVisible(ledger, principal, run.id))) throw keyUsed()
    await untilBegun(run)
  }
  return run
}

function respondStarted({ basePath }: Served, { id }: Run): Response {
  return respondJson({ runId: id }, 201, { location: `${basePath}/runs/${id}` })
}

function keyUsed(): RefusedRequestError {
  return new RefusedRequestError(
    409,
    'key_used',
    'This Idempotency-Key, or this id of a message, began another run before. Give each order a key, and each message an id, of its own.',
  )
}

/** The subject of a principal that has one: its runs are about it unless the request names another. */
function findOnlySubject({ sees: scope }: Principal): string | undefined {
  const subjects: Scope['subjects'] = scope === 'everything' ? undefined : scope.subjects
  return Array.isArray(subjects) && subjects.length === 1 ? (subjects[0] as string) : undefined
}

/** Refuses a run that its caller could not see afterwards. */
function requireSeen(principal: Principal, facts: Parameters<typeof canSee>[1]): void {
  if (canSee(principal, facts)) return
  const scope = principal.sees === 'everything' ? {} : principal.sees
  const missing = !isIncluded(scope.sessions, facts.sessionId) ? 'sessionId' : 'subject'
  throw new RefusedRequestError(
    403,
    'out_of_scope',
    `You would not see this run: its ${missing} is not yours. Give a ${missing} that is.`,
  )
}

/**
 * Refuses a caller that does not see the run which its own would follow: the history of the session would be its. Asked for
 * each place in the session that the run tries to take, since another caller may have taken the one before it meanwhile.
 */
function requireOwnSession(ledger: Ledger, principal: Principal): (before: RunId) => Promise<void> {
  return async (before) => {
    if (await isVisible(ledger, principal, before)) return
    throw new RefusedRequestError(403, 'out_of_scope', 'This session is not yours. Give another sessionId.')
  }
}

/** A caller can only narrow limits at a start. Only the application and a recorded `raise` widen them. */
function requireWithin({ limits: own }: Agent<unknown>, given: StartBody['limits']): void {
  const wider = limitNames.find((name) => {
    const [max, asked] = [own[name], given?.[name]]
    return typeof max === 'number' && asked !== undefined && asked > max
  })
  if (wider === undefined) return
  throw new RefusedRequestError(
    403,
    'limit_too_wide',
    `${wider} is above the limit of the agent (${String(own[wider])}). Give at most that.`,
  )
}

/** The routes of `addStarts`. */
export const startOperations: Operations = {
  'POST /runs': {
    operationId: 'startRun',
    summary: 'Starts a run.',
    parameters: startParameters,
    body: { name: 'Start', schema: startBody, example: { agent: 'cashier', input: 'Pay the bill.' } },
    answers: { 201: 'The run is on record.' },
    fields: ['runId'],
  },
  'POST /runs/:run/fork': {
    operationId: 'forkRun',
    summary: 'Starts a run that shares the events of another one up to `atSeq`.',
    body: { name: 'Fork', schema: forkBody, example: { atSeq: 2, input: 'Pay half of the bill.' } },
    answers: { 201: 'The new run is on record.' },
    fields: ['runId'],
  },
}
