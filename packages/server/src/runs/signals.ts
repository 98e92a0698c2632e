import type { Clock } from '@tallystick/core'
import { omitUndefined } from '@tallystick/core/internal'
import type { Json } from '@tallystick/core/vocabulary'
import * as z from 'zod'
import { isVisible, type Principal, toCallerKey } from '../http/principal.ts'
import { createMalformedError, RefusedRequestError } from '../http/problem.ts'
import type { Routes } from '../http/routes.ts'
import { requirePermission, respondJson } from '../http/served.ts'

/** How signed events are known. */
export interface SignalsOptions {
  /** The secret that signs them: `whsec_` and base64, as Standard Webhooks has it, or a text of at least 32 characters. */
  readonly secret: string
}

/** Who sends a signed event, until its signature is checked: no other route serves it. */
export const signer: Principal = { name: 'webhook', sees: 'everything', may: ['signal'] }

/** How far the time of a signature may be from the server's, in seconds. */
const maxAgeSeconds = 300

/** Returns whether a request claims to be signed, so that its signature takes the place of a caller. */
export function isSigned(request: Request, basePath: string): boolean {
  const path = new URL(request.url).pathname
  const isSignal = path.startsWith(`${basePath}/signals/`) && !path.slice(basePath.length + 9).includes('/')
  return request.method === 'POST' && isSignal && request.headers.has('webhook-signature')
}

/** Adds the route of events. A webhook signs them as Standard Webhooks says; other callers need the permission `signal`. */
export function addSignals(routes: Routes, signals: SignalsOptions | undefined): void {
  const { served } = routes
  const { runtime, ledger, wake, stream } = served
  routes.post(
    '/signals/:name',
    {
      operationId: 'signal',
      summary:
        'Sends an event to all runs that wait for it: the body, any JSON, is the result of their calls.',
      parameters: ['Idempotency-Key', 'webhook-id', 'webhook-timestamp', 'webhook-signature'],
      body: { name: 'Signal', schema: z.json(), example: { usd: 5 } },
      answers: { 202: 'The runs that wait for it have it.' },
      fields: ['woken'],
    },
    async ({ principal, req, readBody }) => {
      const isWebhook = principal === signer
      if (!isWebhook) requirePermission(principal, 'signal')
      const id = req.header('webhook-id')
      const payload: Json = await readBody(
        isWebhook && signals
          ? (text) => requireSignature(req.raw.headers, text, signals, stream.clock)
          : undefined,
      )
      const key = isWebhook ? `webhook:${id}` : toCallerKey(principal, req.header('idempotency-key'))
      const woken = await runtime.signal(req.param('name'), payload, {
        by: principal.name,
        drive: wake === undefined,
        mayWake: (runId) => isVisible(ledger, principal, runId),
        ...omitUndefined({ key }),
      })
      if (wake) for (const runId of woken) await wake(runId)
      return respondJson({ woken: woken.length }, 202)
    },
  )
}

/** Refuses an event whose signature is not that of its id, its time and its body, or was made long ago. */
async function requireSignature(
  headers: Headers,
  body: string,
  { secret }: SignalsOptions,
  clock: Pick<Clock, 'now'>,
): Promise<void> {
  const [id = '', time = '', signatures = ''] = ['id', 'timestamp', 'signature'].map(
    (name) => headers.get(`webhook-${name}`) ?? undefined,
  )
  if (!/^[\x21-\x7e]{1,200}$/.test(id) || !/^\d{1,12}$/.test(time)) {
    throw createMalformedError(
      'A signed event needs webhook-id, 1 to 200 visible ASCII characters, and webhook-timestamp, in seconds since 1970 UTC.',
    )
  }
  const isRecent = Math.abs(clock.now() / 1_000 - Number(time)) <= maxAgeSeconds
  if (isRecent && (await isSignedBy(secret, `${id}.${time}.${body}`, signatures))) return
  throw new RefusedRequestError(
    401,
    'unsigned',
    `The signature of this event is not right, or older than ${maxAgeSeconds} seconds. Sign webhook-id, webhook-timestamp and the body as Standard Webhooks says, with the secret of this server.`,
  )
}

/** Checks each signature in constant time: a secret that is being replaced signs twice. */
async function isSignedBy(secret: string, text: string, signatures: string): Promise<boolean> {
  const encoder = new TextEncoder()
  const bytes = secret.startsWith('whsec_')
    ? decodeBase64(secret.slice('whsec_'.length))
    : encoder.encode(secret)
  if (bytes === undefined) return false
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', bytes, algorithm, false, ['verify'])
  for (const each of signatures.split(' ').slice(0, 10)) {
    const signature = each.startsWith('v1,') ? decodeBase64(each.slice('v1,'.length)) : undefined
    if (signature && (await crypto.subtle.verify('HMAC', key, signature, encoder.encode(text)))) return true
  }
  return false
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.codePointAt(0) ?? 0)
  } catch {
    return undefined
  }
}
