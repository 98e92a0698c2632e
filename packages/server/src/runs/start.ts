import {
  type Agent,
  ConfigurationError,
  type Ledger,
  LedgerConflictError,
  type Run,
  type RunId,
  type RunInput,
  type RunOptions,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  forkWrites,
  omitUndefined,
  overrideAgent,
  readStart,
  waitUntilBegun,
} from '@tallystick/core/internal'
import { caughtUp, followChanges } from '@tallystick/core/store-kit'
import { limitNames } from '@tallystick/core/vocabulary'
import { firstValueFrom } from 'rxjs'
import * as z from 'zod'
import {
  findLastRun,
  isIncluded,
  isVisible,
  type Principal,
  requireVisible,
  canSee,
  readStartHeaders,
  type StartHeaders,
} from '../http/principal.ts'
import { createMalformedError, RefusedRequestError } from '../http/problem.ts'
import { type Routes, startParameters } from '../http/routes.ts'
import { respondJson, requireAgent, requireDriving, requirePermission, type Served } from '../http/served.ts'
import { follow, idle } from '../stream/follow.ts'
import { id, input as anyInput, startBody, type StartBody } from './schema.ts'
import { readState } from './view.ts'

/**
 * Forks a run after an event; `input` replaces the user's last message, `results` gives calls that are started there another
 * result. `model` is the `modelId` of one of the agents of the server.
 */
const forkBody = z.strictObject({
  atSeq: z.int().positive(),
  input: z.exactOptional(anyInput),
  results: z.exactOptional(
    z.array(
      z.strictObject({
        toolCallId: id,
        content: z.string(),
        outcome: z.exactOptional(z.enum(['success', 'failed'])),
      }),
    ),
  ),
  instructions: z.exactOptional(z.string()),
  model: z.exactOptional(id),
  withoutTools: z.exactOptional(z.array(id)),
  writes: z.exactOptional(z.enum(forkWrites)),
  sessionId: z.exactOptional(id),
  reason: z.exactOptional(z.string()),
})

/**
 * Resolves with the next event of a run that this process drives. A failure before that event is one of the request;
 * a later one is reported, since no request waits for it, unless it refuses the request: the event may be of the run that has
 * its key.
 */
export async function awaitFirstEvent(
  { liveRuns, stream: { report } }: Pick<Served, 'liveRuns' | 'stream'>,
  run: Run,
  after: number,
): Promise<RuntimeEvent> {
  let isOnRecord = false
  liveRuns?.set(run.id, run)
  const forget = (): void => {
    if (liveRuns?.get(run.id) === run) liveRuns.delete(run.id)
  }
  run.result.then(forget, (error: unknown) => {
    forget()
    const isRefusal = error instanceof ConfigurationError && error.code === 'key_used'
    if (isOnRecord && !isRefusal) report(error, `Run ${run.id} failed and is no longer driven here`)
  })
  const event = await firstValueFrom(run.after(after).events$)
  isOnRecord = true
  return event
}

/** Adds the routes that begin a run: a start, and a fork of another run. */
export function addStarts(routes: Routes): void {
  const { served } = routes
  const { runtime, ledger, basePath } = served
  const respondStarted = ({ id }: StartedRun): Response =>
    respondJson({ runId: id }, 201, { location: `${basePath}/runs/${id}` })
  routes.post(
    '/runs',
    {
      operationId: 'startRun',
      summary: 'Starts a run.',
      parameters: startParameters,
      body: { name: 'Start', schema: startBody, example: { agent: 'cashier', input: 'Pay the bill.' } },
      answers: { 201: 'The run is on record.' },
      fields: ['runId'],
    },
    async ({ principal, req, readBody }) => {
      const headers = readStartHeaders(req.raw, principal)
      return respondStarted(await startRun(served, principal, await readBody(), headers))
    },
  )
  routes.post(
    '/runs/:run/fork',
    {
      operationId: 'forkRun',
      summary: 'Starts a run that shares the events of another one up to `atSeq`.',
      permission: 'fork',
      body: { name: 'Fork', schema: forkBody, example: { atSeq: 2, input: 'Pay half of the bill.' } },
      answers: { 201: 'The new run is on record.' },
      fields: ['runId'],
    },
    async ({ principal, runId: source, readBody }) => {
      requireDriving(served, 'fork a run')
      const { atSeq, input, results, writes, sessionId, reason, ...change } = await readBody()
      const first = await readStart(ledger, source)
      requireSeen(principal, { agent: first?.agent ?? '', sessionId, subject: first?.subject })
      const by = principal.name
      const run = runtime.fork(source, {
        atSeq,
        context: served.context,
        owner: by,
        mayFollow: requireOwnSession(ledger, principal),
        edit: { by, ...omitUndefined({ input, results, reason }) },
        agent: await changeActiveAgent(served, principal, { source, atSeq, change }),
        ...omitUndefined({ writes, sessionId }),
      })
      await awaitFirstEvent(served, run, 0)
      return respondStarted({ id: run.id })
    },
  )
}

/** Another agent for the fork of a run: the active one with changes. `undefined` without any. */
async function changeActiveAgent(
  served: Served,
  principal: Principal,
  fork: {
    readonly source: RunId
    readonly atSeq: number
    readonly change: Pick<z.infer<typeof forkBody>, 'instructions' | 'model' | 'withoutTools'>
  },
): Promise<Agent<unknown> | undefined> {
  const { model: modelId, ...change } = fork.change
  if (Object.keys(fork.change).length === 0) return undefined
  const { agent } = await readState(served.ledger, fork.source, fork.atSeq)
  const models = [...served.agents.values()].flatMap(({ model, fallbacks }) => [model, ...fallbacks])
  const model = models.find((each) => each.modelId === modelId)
  if (modelId !== undefined && model === undefined) {
    const known = [...new Set(models.map((each) => each.modelId))].join(', ')
    throw createMalformedError(`No agent of this server has the model ${modelId}. They have: ${known}.`)
  }
  return overrideAgent(requireAgent(served, principal, agent), { ...change, model })
}

/** The order to start a run: the fields of a body, and model settings. */
export interface RunOrder
  extends Omit<StartBody, 'input'>, Pick<RunOptions, 'modelSettings' | 'toolChoice' | 'parallelToolCalls'> {
  readonly input: RunInput
  /** The id of the message that the run answers. */
  readonly messageId?: string
}

/**
 * Starts a run for a principal, and resolves when it is on record. Throws if the principal may not start runs, or could not
 * see this one.
 */
export async function startRun(
  served: Served,
  principal: Principal,
  body: RunOrder,
  { idempotencyKey, traceId }: StartHeaders,
): Promise<StartedRun> {
  const { ledger } = served
  requirePermission(principal, 'start')
  const { agent: _name, input, sessionId, from, messageId: inputId, ...options } = body
  const { agent, subject } = requireStartable(served, principal, body)
  if (from) await requireVisible(ledger, principal, from.runId)
  const run = await begin(served, agent, input, {
    ...options,
    context: served.context,
    owner: principal.name,
    mayFollow: requireOwnSession(ledger, principal),
    ...omitUndefined({ sessionId, from, subject, inputId, idempotencyKey, traceId }),
  })
  if (idempotencyKey !== undefined) {
    // A run that its caller does not see answers it nothing, whatever the key was made of.
    if (!(await isVisible(ledger, principal, run.id))) {
      throw new RefusedRequestError(
        409,
        'key_used',
        'This Idempotency-Key, or this id of a message, has started another run already. Give each order its own key, and each message its own id.',
      )
    }
    if (run.handle) await waitUntilBegun(run.handle)
  }
  return run
}

/** The agent and the subject of runs that a principal may have started. Throws a problem for those that it could not see. */
export function requireStartable(
  served: Served,
  principal: Principal,
  {
    agent: name,
    sessionId,
    subject: given,
    limits,
  }: Pick<RunOrder, 'agent' | 'sessionId' | 'subject' | 'limits'>,
): { readonly agent: Agent<unknown>; readonly subject: string | undefined } {
  const agent = requireAgent(served, principal, name)
  const subjects = principal.sees === 'everything' ? undefined : principal.sees.subjects
  // The runs of a principal with one subject are about it, unless the request names another.
  const [only, ...others] = typeof subjects === 'function' ? [] : (subjects ?? [])
  const subject = given ?? (others.length === 0 ? only : undefined)
  requireSeen(principal, { agent: agent.name, sessionId, subject })
  requireWithin(agent, limits)
  return { agent, subject }
}

/** A run that is on record; with its handle if this process drives it. */
interface StartedRun {
  readonly id: RunId
  readonly handle?: Run
}

/** Puts the start of a run on record, and sees to it that the run is driven, here or by workers. */
async function begin(
  served: Served,
  agent: Agent<unknown>,
  input: RunInput,
  options: Parameters<Served['runtime']['run']>[2] & RunOptions,
): Promise<StartedRun> {
  const { runtime, wake } = served
  if (wake === undefined) {
    const handle: Run = runtime.run(agent, input, options)
    await awaitFirstEvent(served, handle, 0)
    return { id: handle.id, handle }
  }
  const id = await enqueueInTurn(served, agent, input, options)
  await wake(id)
  return { id }
}

/** Puts the start of a run on record; with `whenBusy: 'wait'` after the run of its session that is there has ended. */
async function enqueueInTurn(
  served: Served,
  agent: Agent<unknown>,
  input: RunInput,
  { whenBusy, ...options }: Parameters<typeof begin>[3],
): Promise<RunId> {
  for (;;) {
    try {
      return await served.runtime.enqueue(agent, input, options)
    } catch (error) {
      const isBusy = error instanceof LedgerConflictError && error.kind === 'session'
      const last =
        isBusy && whenBusy === 'wait' ? await findLastRun(served.ledger, options.sessionId ?? '') : undefined
      if (last === undefined || !(await followUntil(served, last, ({ type }) => type === 'run_finished')))
        throw error
    }
  }
}

/** Follows a run until an event is found, and returns that; `undefined` if the server stops first. */
export async function followUntil(
  { reads, stream }: Served,
  runId: RunId,
  isFound: (event: RuntimeEvent) => boolean,
): Promise<RuntimeEvent | undefined> {
  const changes = followChanges(reads.forReader(), runId, { after: 0 })
  for await (const event of follow(changes, stream)) {
    if (event !== caughtUp && event !== idle && isFound(event)) return event
  }
  return undefined
}

/** Refuses a run that its caller could not see afterwards. */
export function requireSeen(principal: Principal, facts: Parameters<typeof canSee>[1]): void {
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
 * each place in the session that the run tries to take, since another caller may have taken the place before it.
 */
export function requireOwnSession(ledger: Ledger, principal: Principal): (before: RunId) => Promise<void> {
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
