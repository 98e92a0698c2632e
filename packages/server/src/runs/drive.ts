import type { StartData } from '@tallystick/core'
import { parseRunId } from '@tallystick/core/vocabulary'
import * as z from 'zod'
import { requireVisible } from '../http/principal.ts'
import type { Routes } from '../http/routes.ts'
import { respondJson } from '../http/served.ts'
import { id } from './schema.ts'

/** Drives a run for a stretch. */
const driveBody = z.strictObject({
  runId: id,
  // How the run begins, if it is not on record. The runtime checks it, as it does what an engine hands on.
  start: z.exactOptional(
    z.strictObject({
      agent: id,
      input: z.json(),
      options: z.exactOptional(z.record(z.string(), z.json())),
    }),
  ),
  maxMs: z.exactOptional(z.number().nonnegative()),
})

/** How long a request drives a run if it does not say, in milliseconds: hosts of functions give up soon after. */
const defaultMaxMs = 60_000

/**
 * Adds the route that drives a run while its request waits: for engines, crons and functions that are called. Only a principal whose
 * `may` names `drive` may.
 */
export function addDrive(routes: Routes): void {
  const { served } = routes
  const { runtime, ledger } = served
  routes.post(
    '/drive',
    {
      operationId: 'driveRun',
      summary: 'Drives a run until it rests, or for `maxMs`.',
      permission: 'drive',
      body: { name: 'Drive', schema: driveBody, example: { runId: '0190a0d2-04d4-72fd-99e7-7861fc19641d' } },
      answers: {
        200: 'The run rests: it is `done`, `waiting`, `parked`, or `handedBack` to be driven again; or another process has it (`lost`).',
      },
      fields: ['status', 'runId', 'seq', 'pending'],
    },
    async ({ principal, readBody }) => {
      const { runId: text, start, maxMs = defaultMaxMs } = await readBody()
      const runId = parseRunId(text)
      const isNew = start !== undefined && runId !== undefined && (await ledger.head(runId)) === undefined
      if (!isNew) await requireVisible(ledger, principal, text)
      const given = { start: start as StartData | undefined, maxMs, context: served.context }
      return respondJson(await runtime.drive(text, given))
    },
  )
}
