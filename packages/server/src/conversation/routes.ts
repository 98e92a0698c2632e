import type { RunState } from '@tallystick/core'
import * as z from 'zod'
import { requireVisible } from '../http/principal.ts'
import type { Operation, Routes } from '../http/routes.ts'
import { respondJson, parsePageSize, requireAgent, type Served } from '../http/served.ts'
import { deliverCommand } from '../runs/commands.ts'
import { readConversationPage, hasMore, findLastVisibleRun, type MessageWriter } from './history.ts'

/** The run whose answer the page shows. Default: the last one. */
const stopBody: z.ZodType<{ readonly runId?: string }> = z.strictObject({
  runId: z.exactOptional(z.string().max(200)),
})

/** How a protocol shows a conversation. */
interface ShownConversation<Message> {
  readonly root: '/chat' | '/ag-ui'
  /** The operation that reads a page, and the one that stops a run. */
  readonly read: Pick<Operation, 'operationId' | 'summary'>
  readonly stop: Pick<Operation, 'operationId'>
  readonly newWriter: () => MessageWriter<Message>
  /** Further fields of a page. */
  readonly besides?: (state: RunState) => Promise<object>
}

/**
 * Adds the routes of a conversation to those of a protocol: its messages, at once or when there are more, and its stop. The
 * conversation of another caller is answered like one that has not begun.
 */
export function addConversation<Message extends { readonly id: string }>(
  routes: Routes,
  { root, read, stop, newWriter, besides }: ShownConversation<Message>,
): void {
  const { served } = routes
  const { ledger } = served
  routes.get(
    `${root}/:agent/:chat`,
    {
      ...read,
      parameters: ['version', 'before', 'limit'],
      answers: { 200: 'The page.', 204: 'There is no more than that version.' },
      fields: ['messages'],
    },
    async ({ principal, req }) => {
      requireAgent(served, principal, req.param('agent'))
      const sessionId = req.param('chat')
      const [version, before] = [req.query('version'), req.query('before')]
      if (version !== undefined) {
        const isMore = (): Promise<boolean> => hasMore(ledger, principal, sessionId, version)
        if (!(await waitForMore(served, isMore, req.raw.signal))) return new Response(null, { status: 204 })
      }
      const query = { sessionId, limit: parsePageSize(req.query('limit')), before }
      const { page, state } = await readConversationPage(ledger, principal, query, newWriter)
      return respondJson({ ...page, ...(before === undefined && state && (await besides?.(state))) })
    },
  )
  routes.post(
    `${root}/:agent/:chat/stop`,
    {
      ...stop,
      summary: 'Stops the run whose answer a page shows.',
      body: { name: 'Stop', schema: stopBody, example: {} },
      answers: { 200: 'Whether a run was stopped.' },
      fields: ['accepted'],
    },
    async ({ principal, req, readBody }) => {
      requireAgent(served, principal, req.param('agent'))
      const { runId: named } = await readBody()
      const runId =
        named === undefined
          ? await findLastVisibleRun(ledger, principal, req.param('chat'))
          : await requireVisible(ledger, principal, named)
      if (runId === undefined) return respondJson({ accepted: false })
      const command = { type: 'cancel', by: principal.name, reason: 'Stopped in the chat' } as const
      // Refused if the run has ended, or is being cancelled already.
      const { accepted } = await deliverCommand(served, principal, runId, command)
      return respondJson({ accepted })
    },
  )
}

/** Hints about changes are gathered for this long, so that a busy ledger is not read at each of them. */
const gatherMs = 100

/** Waits until a conversation has more; `false` if it has not, after the time of a heartbeat. */
async function waitForMore(
  { ledger, stream: { clock, heartbeatMs, stopping } }: Served,
  hasMore: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<boolean> {
  const over = Promise.withResolvers<'over'>()
  const end = (): void => over.resolve('over')
  const stopTimer = clock.schedule(heartbeatMs, end)
  let wake = Promise.withResolvers<void>()
  // Before the first look, so that nothing falls between.
  const hints = ledger.changes().subscribe({ next: () => wake.resolve(), error: end, complete: end })
  for (const each of [stopping, signal]) each.addEventListener('abort', end)
  try {
    for (;;) {
      if (await hasMore()) return true
      if ((await Promise.race([over.promise, wake.promise])) === 'over') return false
      const gathered = Promise.withResolvers<void>()
      clock.schedule(gatherMs, gathered.resolve)
      await Promise.race([gathered.promise, over.promise])
      wake = Promise.withResolvers()
    }
  } finally {
    stopTimer()
    hints.unsubscribe()
    for (const each of [stopping, signal]) each.removeEventListener('abort', end)
  }
}

/** The header in which a response names the run that it is about. */
export const runHeader = 'tallystick-run'
