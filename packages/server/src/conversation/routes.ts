import type { RunId, RunState } from '@tallystick/core'
import type { Context, Hono } from 'hono'
import * as z from 'zod'
import { type Principal, requireVisible } from '../http/principal.ts'
import type { Operation } from '../http/openapi.ts'
import { readBody } from '../http/request.ts'
import {
  respondJson,
  parsePageSize,
  requireAgent,
  requirePermission,
  type RequestScope,
  type Served,
} from '../http/served.ts'
import { readConversationPage, hasMore, findLastVisibleRun, type MessageWriter } from './history.ts'

interface StopBody {
  /** The run whose answer the page shows. Default: the last one. */
  readonly runId?: string
}

/** Checks such a body. */
const stopBody: z.ZodType<StopBody> = z.strictObject({ runId: z.exactOptional(z.string().max(200)) })

interface Shown<Message> {
  readonly newWriter: () => MessageWriter<Message>
  /** Further fields of a page. */
  readonly besides?: (state: RunState) => Promise<object>
}

/**
 * Adds the routes of a conversation to those of a protocol: its messages, at once or when there are more, and its stop. The
 * conversation of another caller is answered like one that has not begun.
 */
export function addConversation<Message extends { readonly id: string }>(
  app: Hono<RequestScope>,
  served: Served,
  root: string,
  { newWriter, besides }: Shown<Message>,
): void {
  const { ledger } = served
  app.get(`${root}/:agent/:chat`, async (context) => {
    const { principal, sessionId } = readConversation(context, served)
    const { req } = context
    const version = req.query('version')
    if (
      version !== undefined &&
      !(await waitForMore(served, principal, { sessionId, version, signal: req.raw.signal }))
    ) {
      return new Response(null, { status: 204 })
    }
    const query = { sessionId, limit: parsePageSize(req.query('limit')), before: req.query('before') }
    const { page, state } = await readConversationPage(ledger, principal, query, newWriter)
    const isNewest = query.before === undefined && state !== undefined
    return respondJson({ ...page, ...(isNewest && (await besides?.(state))) })
  })
  app.post(`${root}/:agent/:chat/stop`, async (context) => {
    const { principal, sessionId } = readConversation(context, served)
    requirePermission(principal, 'cancel')
    const { runId: named } = await readBody(context.req.raw, stopBody, served.body)
    const runId =
      named === undefined
        ? await findLastVisibleRun(ledger, principal, sessionId)
        : await requireVisible(ledger, principal, named)
    return respondJson({ accepted: runId !== undefined && (await stop(served, principal, runId)) })
  })
}

function readConversation(
  context: Context<RequestScope>,
  served: Served,
): { readonly principal: Principal; readonly sessionId: string } {
  const principal = context.get('principal')
  requireAgent(served, principal, context.req.param('agent') ?? '')
  return { principal, sessionId: context.req.param('chat') ?? '' }
}

/** Cancels a run; `false` if it has ended, or is being cancelled already. */
async function stop({ runtime, context }: Served, principal: Principal, runId: RunId): Promise<boolean> {
  const command = { type: 'cancel', by: principal.name, reason: 'Stopped in the chat' } as const
  const answer = await runtime.send(runId, command, { context })
  return answer.accepted
}

/** Hints about changes are gathered for this long, so that a busy ledger is not read at each of them. */
const gatherMs = 100

/** Waits until a conversation has more than a version of it; `false` if it has not, after the time of a heartbeat. */
async function waitForMore(
  served: Served,
  principal: Principal,
  {
    sessionId,
    version,
    signal,
  }: { readonly sessionId: string; readonly version: string; readonly signal: AbortSignal },
): Promise<boolean> {
  const { ledger, stream } = served
  const over = Promise.withResolvers<'over'>()
  const end = (): void => over.resolve('over')
  const stopTimer = stream.clock.schedule(stream.heartbeatMs, end)
  let wake = Promise.withResolvers<void>()
  // Before the first look, so that nothing falls between.
  const hints = ledger.changes().subscribe({ next: () => wake.resolve(), error: end, complete: end })
  for (const each of [stream.stopping, signal]) each.addEventListener('abort', end)
  try {
    for (;;) {
      if (await hasMore(ledger, principal, sessionId, version)) return true
      if ((await Promise.race([over.promise, wake.promise])) === 'over') return false
      const gathered = Promise.withResolvers<void>()
      stream.clock.schedule(gatherMs, gathered.resolve)
      await Promise.race([gathered.promise, over.promise])
      wake = Promise.withResolvers()
    }
  } finally {
    stopTimer()
    hints.unsubscribe()
    for (const each of [stream.stopping, signal]) each.removeEventListener('abort', end)
  }
}

/** The header in which a response names the run that it is about. */
export const runHeader = 'tallystick-run'

/** The route of a page of a conversation; a protocol adds its id and summary. */
export const pageOperation: Pick<Operation, 'parameters' | 'answers' | 'fields'> = {
  parameters: ['version', 'before', 'limit'],
  answers: { 200: 'The page.', 204: 'There is no more than that version.' },
  fields: ['messages'],
}

/** The route that stops a run; a protocol adds its id. */
export const stopOperation: Omit<Operation, 'operationId'> = {
  summary: 'Stops the run whose answer a page shows.',
  body: { name: 'Stop', schema: stopBody, example: {} },
  answers: { 200: 'Whether a run was stopped.' },
  fields: ['accepted'],
}
