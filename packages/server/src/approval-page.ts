import {
  type ApprovalClaims,
  approvalTokens,
  type IssueOptions,
  type PendingApproval,
  type RunState,
  type TokenRefusal,
} from '@tallystick/core'
import { listPendingApprovals } from '@tallystick/core/machine'
import { isSamePerson, omitUndefined, showHidden } from '@tallystick/core/internal'
import { type EventOf, toCanonicalJson } from '@tallystick/core/vocabulary'
import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'
import * as z from 'zod'
import type { Principal } from './http/principal.ts'
import { isServerFault, RefusedRequestError } from './http/problem.ts'
import { readText } from './http/request.ts'
import type { Routes } from './http/routes.ts'
import type { Served } from './http/served.ts'
import { deliverCommand } from './runs/commands.ts'
import { readState } from './runs/view.ts'

/** The page on which a person decides about one call, by a signed link. */
export interface ApprovalPageOptions {
  /** At least 32 random characters. Of several secrets the first signs, and all are accepted. */
  readonly secret: string | readonly string[]
  /** Where people reach this server, with its `basePath`, such as `https://ops.example.com/api`. */
  readonly url: string
}

/** The person whom a link is for. Whoever has the link can decide, so send it to that person only. */
export interface LinkOptions extends Omit<IssueOptions, 'mayEdit' | 'to'> {
  /** Recorded as `by` of the decision. */
  readonly to: string
}

/** Makes links, and answers them. */
export interface ApprovalPage {
  link(approval: PendingApproval, options: LinkOptions): string
  addTo(routes: Routes): void
}

type Claims = ApprovalClaims & { readonly to: string }
type Html = HtmlEscapedString | Promise<HtmlEscapedString>

/**
 * The page works without JavaScript. A GET only shows: programs that scan mails open links, too. The decision is a form that is
 * posted, and counts once. The token is the permission of its holder, so nobody else has to be known here.
 */
export function createApprovalPage(served: Served, { secret, url }: ApprovalPageOptions): ApprovalPage {
  const { ledger, stream, body } = served
  const address = `${url.replace(/\/$/, '')}/approval`
  const tokens = approvalTokens({ secret, audience: address, clock: body.clock })

  /** Throws a problem for a token that cannot decide. */
  const readClaims = (token: string): Claims => {
    const claims: ApprovalClaims | TokenRefusal = tokens.read(token)
    if ('accepted' in claims)
      throw new RefusedRequestError(claims.code === 'token_expired' ? 410 : 400, claims.code, claims.message)
    const { to } = claims
    if (to !== undefined) return { ...claims, to }
    throw new RefusedRequestError(400, 'invalid_token', 'The link names nobody. Ask for one with your name.')
  }

  const show = async (token: string, refusal?: RefusedRequestError): Promise<Response> => {
    const claims = readClaims(token)
    const state = await readState(ledger, claims.runId)
    const question = listPendingApprovals(state).find((each) => isAskedBy(each, claims))
    const content =
      question === undefined
        ? renderRecord(claims, await findDecision(served, claims))
        : renderQuestion(token, claims, question, state)
    return respond(
      html`${refusal && html`<p class="bad">${makeVisible(refusal.message)}</p>`}${content}`,
      refusal?.status,
    )
  }

  const decide = async (request: Request): Promise<Response> => {
    const form = new URLSearchParams(await readText(request, { ...body, maxBodyBytes: 65_536 }))
    const token = form.get('approval') ?? ''
    const decision = form.get('decision')
    const { runId, toolCallId, attempt, inputDigest, to, roles } = readClaims(token)
    if (decision !== 'approve' && decision !== 'deny')
      throw new RefusedRequestError(
        400,
        'malformed',
        'The form says neither approve nor deny. Open the link again.',
      )
    await readState(ledger, runId)
    const reason = form.get('reason')?.trim().slice(0, 2_000) || undefined
    const answered = { toolCallId, attempt, inputDigest, by: to, via: 'link' }
    const principal: Principal = {
      ...{ name: to, sees: 'everything', may: [decision] },
      ...omitUndefined({ roles }),
    }
    const acknowledgement = await deliverCommand(
      served,
      principal,
      runId,
      decision === 'approve'
        ? { type: 'approve', ...answered, ...omitUndefined({ reason }) }
        : { type: 'deny', ...answered, reason: reason ?? 'No reason was given.' },
    )
    if (acknowledgement.accepted) {
      // The page after it shows what is on record, and can be loaded again.
      return new Response(null, {
        status: 303,
        headers: { location: `?approval=${encodeURIComponent(token)}`, 'cache-control': 'no-store' },
      })
    }
    const { code, message } = acknowledgement
    return await show(token, new RefusedRequestError(code === 'not_an_approver' ? 403 : 409, code, message))
  }

  const answer = async (what: () => Promise<Response>): Promise<Response> => {
    try {
      return await what()
    } catch (error) {
      const isFault = isServerFault(error)
      if (isFault) stream.report(error, 'The approval page failed')
      const { status = 404, message } = isFault
        ? { status: 500, message: 'The server failed, and nothing was decided here. Open the link again.' }
        : (error as RefusedRequestError)
      return respond(html`<p class="bad">${makeVisible(message)}</p>`, status)
    }
  }

  return {
    link: (approval, options) => `${address}?approval=${encodeURIComponent(tokens.issue(approval, options))}`,
    addTo(routes) {
      routes.get(
        '/approval',
        {
          operationId: 'showApproval',
          summary: 'The page on which the person of a signed link decides about a call. It changes nothing.',
          parameters: ['approval'],
          answers: { 200: 'The question, or what became of it.' },
          media: ['text/html'],
          isPage: true,
        },
        ({ req }) => answer(() => show(req.query('approval') ?? '')),
      )
      routes.post(
        '/approval',
        {
          operationId: 'decideApproval',
          summary: 'Takes the decision of the person of a signed link, once.',
          body: {
            name: 'Decision',
            schema: decisionForm,
            example: { approval: 'TOKEN', decision: 'approve' },
          },
          answers: { 303: 'The decision is on record; the page shows it.' },
          media: ['text/html'],
          isPage: true,
        },
        ({ req }) => answer(() => decide(req.raw)),
      )
    },
  }
}

const decisionForm = z.object({
  approval: z.string(),
  decision: z.enum(['approve', 'deny']),
  reason: z.exactOptional(z.string()),
})

type Question = Pick<PendingApproval, 'toolCallId' | 'attempt' | 'inputDigest'>

function isAskedBy(question: Question, { toolCallId, attempt, inputDigest }: ApprovalClaims): boolean {
  return (
    question.toolCallId === toolCallId && question.attempt === attempt && question.inputDigest === inputDigest
  )
}

/** The recorded decision about the question of a link, if there is one. */
async function findDecision(
  { ledger }: Served,
  claims: ApprovalClaims,
): Promise<EventOf<'approval_decided'> | undefined> {
  const { runId, toolCallId, attempt } = claims
  for await (const event of ledger.find({ runId, toolCallId, types: ['approval_decided'] })) {
    if (event.type === 'approval_decided' && event.attempt === attempt && !event.elsewhere) return event
  }
  return undefined
}

function renderQuestion(token: string, claims: Claims, question: PendingApproval, state: RunState): Html {
  const { name, input, reason, approvers = [], approvals = [], inputDigest, attempt, runId } = question
  const canonical = JSON.stringify(JSON.parse(toCanonicalJson(input)), null, 2)
  const people = approvers.map(
    ({ count = 1, roles = [] }) =>
      `${count === 1 ? '1 person' : `${count} people`}${roles.length === 0 ? '' : ` of ${roles.join(' or ')}`}`,
  )
  const isDone = approvals.some(({ by }) => isSamePerson(by, claims.to))
  return html` <h1>May ${makeVisible(state.agent)} run ${makeVisible(name)}?</h1>
    ${reason && html`<p>Asked because: ${makeVisible(reason)}</p>`}
    <pre>${makeVisible(canonical)}</pre>
    ${people.length > 0 && html`<p>Needs the approval of ${makeVisible(people.join(', and '))}.</p>`}
    ${approvals.length > 0 && html`<p>Approved by ${makeVisible(approvals.map(({ by }) => by).join(', '))}.</p>`}
    ${attempt > 1 && html`<p class="bad">It was started before, and nobody knows whether it took effect.</p>`}
    <p class="soft">
      Run ${runId}, input ${inputDigest.slice(0, 16)}…, for ${makeVisible(claims.to)}, until
      ${new Date(claims.expiresAt).toISOString()}
    </p>
    ${
      isDone
        ? html`<p>You have approved it. It waits for somebody else.</p>`
        : html`<form method="post" action="?">
            <input type="hidden" name="approval" value="${token}" />
            <label>Reason <input name="reason" maxlength="2000" autocomplete="off" /></label>
            <button name="decision" value="approve">Approve</button>
            <button name="decision" value="deny">Deny</button>
          </form>`
    }`
}

function renderRecord(claims: Claims, decision: EventOf<'approval_decided'> | undefined): Html {
  if (decision === undefined) return html`<p>This call does not wait for a decision any more.</p>`
  const { approved, by, reason, at } = decision
  return html`<h1>${approved ? 'Approved' : 'Denied'}</h1>
    <p>By ${makeVisible(by)} at ${new Date(at).toISOString()}${reason ? makeVisible(`: ${reason}`) : '.'}</p>
    <p class="soft">Call ${claims.toolCallId} of run ${claims.runId}, event ${decision.seq}</p>`
}

/** The text of a decision: what looks like a space and is another is made visible, too. */
const makeVisible = (text: string): string => showHidden(text, { spaces: true })

const style = `body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid #888;padding:.75rem;direction:ltr;unicode-bidi:plaintext}
.soft{color:#666}.bad{color:#b00020}button,input{font:inherit;margin:.25rem 0}label{display:block}`

async function respond(content: Html, status = 200): Promise<Response> {
  const nonce = crypto.randomUUID()
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width" />
        <title>Approval</title>
        <style nonce="${nonce}">
          ${style}
        </style>
      </head>
      <body>
        ${content}
      </body>
    </html>`
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'`
  return new Response(String(await page), {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    },
  })
}
