import type { Ledger, RunId } from '@tallystick/core'
import type { CommandAcknowledgement } from '@tallystick/core/kit'
import type { Hono } from 'hono'
import { RefusedRequestError } from '../http/problem.ts'
import { readBody } from '../http/read-body.ts'
import { callerKey } from '../access/caller-key.ts'
import { requireVisible } from '../access/visible-run.ts'
import { resumeBody } from '../runs/bodies.ts'
import { commandKinds, commandNames, type CommandName } from '../runs/command-kinds.ts'
import { firstEvent } from '../runs/first-event.ts'
import { stateAt, statusOf } from '../runs/run-view.ts'
import { json, requirePermission, type RequestScope, type Served } from './served.ts'

/**
 * Adds the routes of commands. A command goes to the process that drives the run; if no process does, this one takes
 * the run over.
 */
export function addCommands(app: Hono<RequestScope>, served: Served): void {
  for (const name of commandNames) addCommand(app, served, name)
  app.post('/runs/:run/resume', async (context) => {
    const principal = context.get('principal')
    requirePermission(principal, 'resume')
    const runId = await requireVisible(served.ledger, principal, context.req.param('run'))
    const { takeOver = false } = await readBody(context.req.raw, resumeBody, served.body)
    await requireResumable(served.ledger, runId, takeOver)
    await resume(served, runId, takeOver)
    return json({ accepted: true }, 202)
  })
}

function addCommand(app: Hono<RequestScope>, served: Served, name: CommandName): void {
  app.post(`/runs/:run/${name}`, async (context) => {
    const principal = context.get('principal')
    requirePermission(principal, name)
    const runId = await requireVisible(served.ledger, principal, context.req.param('run') ?? '')
    const sent = await readBody(context.req.raw, commandKinds[name].read, served.body)
    const key = callerKey(principal, context.req.header('idempotency-key'))
    const command = sent({ by: principal.name, newId: () => key ?? crypto.randomUUID() })
    const own = { key, context: served.context }
    return acknowledged(await served.runtime.send(runId, command, own))
  })
}

function acknowledged(acknowledgement: CommandAcknowledgement): Response {
  if (acknowledgement.accepted) return json({ accepted: true })
  const { code, message } = acknowledgement
  throw new RefusedRequestError(code === 'malformed' ? 400 : 409, code, message)
}

async function requireResumable(ledger: Ledger, runId: RunId, takeOver: boolean): Promise<void> {
  const status = await statusOf(ledger, await stateAt(ledger, runId))
  if (status === 'done')
    throw notResumable('run_finished', 'The run has ended. Start a run of its session, or fork it.')
  if (status !== 'under_way' || takeOver) return
  throw notResumable(
    'under_way',
    'A process drives the run: follow its events. If it died on another machine, its lease ends within seconds; {"takeOver":true} does not wait for that, and what a process that lives has under way may then happen twice.',
  )
}

function notResumable(code: string, message: string): RefusedRequestError {
  return new RefusedRequestError(409, code, message)
}

/** Resolves when the resume is on record, or the run has stopped. */
async function resume(served: Served, runId: RunId, takeOver: boolean): Promise<void> {
  const { seq } = (await served.ledger.head(runId)) ?? { seq: 0 }
  const run = served.runtime.resume(runId, { context: served.context, takeOver })
  await Promise.race([firstEvent(run, seq, served.stream.report), run.result])
}
