import type { SessionEditOptions } from '@tallystick/core'
import { omitUndefined, readStart } from '@tallystick/core/internal'
import { userPartSchema } from '@tallystick/core/schemas'
import * as z from 'zod'
import { findLastVisibleRun } from '../conversation/history.ts'
import { type Principal, requireVisible } from '../http/principal.ts'
import { createMalformedError } from '../http/problem.ts'
import { createSessionNotFoundError } from './reads.ts'
import type { Routes } from '../http/routes.ts'
import { requirePermission, respondJson, type Served } from '../http/served.ts'
import { id, isWebUrl, webUrl } from './schema.ts'
import { requireOwnSession, requireSeen, requireStartable } from './start.ts'

const reason = z.exactOptional(z.string())
const whenBusy = z.exactOptional(z.enum(['conflict', 'wait']))

/** A message as a text, or one of the user as parts. */
const message = z.union([
  z.strictObject({ role: z.enum(['user', 'assistant']), content: z.string().min(1) }),
  z.strictObject({
    role: z.literal('user'),
    parts: z.array(userPartSchema.refine(isWebUrl, webUrl)).min(1),
  }),
])

/** Adds messages to the end of a conversation. With `agent` it may begin one, under the name of that agent and about `subject`. */
const appendBody = z.strictObject({
  messages: z.array(message).min(1).max(1_000),
  agent: z.exactOptional(id),
  subject: z.exactOptional(id),
  reason,
  whenBusy,
})
/** Takes messages from the end of a conversation. */
const takeBody = z.strictObject({ reason, whenBusy })
/** Ends a standing approval, by the id of the call that was approved. */
const withdrawBody = z.strictObject({ standing: id, reason, whenBusy })
/** Begins a conversation under another id, with the history of this one: as of its last run, or of an event. */
const branchBody = z.strictObject({
  sessionId: id,
  runId: z.exactOptional(id),
  atSeq: z.exactOptional(z.int().positive()),
  reason,
})

/**
 * Adds the edits of conversations. Each takes what a start takes, since a run could begin with the same history; a withdrawal only
 * makes later runs ask.
 */
export function addSessionEdits(routes: Routes): void {
  const { served } = routes
  const { runtime, ledger } = served
  routes.post(
    '/sessions/:session/messages',
    {
      operationId: 'appendToSession',
      summary: 'Adds messages to the history with which the next run of a conversation begins.',
      body: {
        name: 'AppendToSession',
        schema: appendBody,
        example: { messages: [{ role: 'user', content: 'The dentist is at nine.' }] },
      },
      answers: { 201: 'The messages are on record.' },
      fields: ['sessionId', 'runId', 'seq', 'messages'],
    },
    async ({ principal, req, readBody }) => {
      const sessionId = req.param('session')
      const { messages, agent, subject, ...given } = await readBody()
      const first = agent === undefined ? undefined : { agent, ...omitUndefined({ subject }) }
      const own = await prepare(served, principal, sessionId, { first })
      const history = await runtime.session(sessionId).append(messages, { ...own, ...given })
      return respondJson({ sessionId, ...history }, 201)
    },
  )
  for (const verb of ['pop', 'clear'] as const) {
    routes.post(
      `/sessions/:session/${verb}`,
      {
        operationId: `${verb}Session`,
        summary:
          verb === 'pop'
            ? 'Takes the last message of a conversation back, a call together with its result.'
            : 'Lets the next run of a conversation begin without history.',
        body: { name: verb === 'pop' ? 'PopSession' : 'ClearSession', schema: takeBody, example: {} },
        answers: { 200: 'What was taken: it stays on record where it was said.' },
        fields: ['sessionId', 'messages'],
      },
      async ({ principal, req, readBody }) => {
        const sessionId = req.param('session')
        const options = { ...(await prepare(served, principal, sessionId)), ...(await readBody()) }
        return respondJson({ sessionId, messages: await runtime.session(sessionId)[verb](options) })
      },
    )
  }
  routes.post(
    '/sessions/:session/withdraw',
    {
      operationId: 'withdrawFromSession',
      summary: 'Ends a standing approval of a conversation of which no run is under way.',
      body: {
        name: 'WithdrawFromSession',
        schema: withdrawBody,
        example: { standing: 'call_0190a0d204d472fd99e77861fc19641d_1_1_0' },
      },
      answers: { 200: 'Whether it held until now.' },
      fields: ['sessionId', 'withdrawn'],
    },
    async ({ principal, req, readBody }) => {
      const sessionId = req.param('session')
      const { standing, ...given } = await readBody()
      const own = { ...(await prepare(served, principal, sessionId, { permission: 'withdraw' })), ...given }
      return respondJson({ sessionId, withdrawn: await runtime.session(sessionId).withdraw(standing, own) })
    },
  )
  routes.post(
    '/sessions/:session/branch',
    {
      operationId: 'branchSession',
      summary: 'Begins a conversation under another id with the history of this one.',
      body: { name: 'BranchSession', schema: branchBody, example: { sessionId: 'chat-2' } },
      answers: { 201: 'The branch is on record.' },
      fields: ['sessionId', 'runId', 'seq', 'messages'],
    },
    async ({ principal, req, readBody }) => {
      const from = req.param('session')
      const own = await prepare(served, principal, from)
      const { sessionId, runId: named, ...given } = await readBody()
      const runId =
        named === undefined
          ? await findLastVisibleRun(ledger, principal, from)
          : await requireVisible(ledger, principal, named)
      const start = runId && (await readStart(ledger, runId))
      if (start) requireSeen(principal, { agent: start.agent, sessionId, subject: start.subject })
      const options = { ...own, ...given, ...omitUndefined({ runId }) }
      const branch = await runtime.session(from).branch(sessionId, options)
      return respondJson({ sessionId, ...(await branch.history()) }, 201)
    },
  )
}

/**
 * The options of an edit by a principal. Throws a problem for a session that does not exist, as it does for another's, unless
 * the edit may begin one.
 */
async function prepare(
  served: Served,
  principal: Principal,
  sessionId: string,
  {
    permission = 'start',
    first,
  }: {
    readonly permission?: 'start' | 'withdraw'
    readonly first?: { readonly agent: string; readonly subject?: string } | undefined
  } = {},
): Promise<SessionEditOptions & { readonly by: string }> {
  requirePermission(principal, permission)
  const { ledger } = served
  const { name } = principal
  const own = { by: name, owner: name, mayFollow: requireOwnSession(ledger, principal) }
  if ((await findLastVisibleRun(ledger, principal, sessionId)) !== undefined) return own
  if (first === undefined) throw createSessionNotFoundError(sessionId)
  if (!id.safeParse(sessionId).success) {
    throw createMalformedError(
      'The id of a session that begins has to be 1 to 200 characters, and not blank, as for a start.',
    )
  }
  const { agent, subject } = requireStartable(served, principal, { ...first, sessionId })
  return { ...own, agent: agent.name, ...omitUndefined({ subject }) }
}
