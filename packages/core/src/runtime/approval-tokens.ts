import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { PendingApproval } from '../machine/calls.ts'
import { isSameSecret } from '../values/digest.ts'
import { type Clock, defaultHost } from '../values/host.ts'
import { parseRunId, parseToolCallId, type RunId, type ToolCallId } from '../values/ids.ts'
import { toCanonicalJson, type JsonObject, omitUndefined } from '../values/json.ts'
import {
  anyObject,
  anyText,
  fields,
  filledText,
  listOf,
  longTime,
  maybe,
  type Schema,
  requireOptions,
  trueOrFalse,
  valueThat,
} from '../values/option.ts'
import { shownApproval } from './run.ts'
import { createAnswer, type CommandAcknowledgement } from './commands.ts'
import type { InContext, Runtime } from './runtime-options.ts'

/** The secret that signs approval tokens, and their audience. */
export interface ApprovalTokenOptions {
  /**
   * At least 32 random characters that only the application knows. Of several secrets, the first signs and all are
   * accepted, so that you can replace a secret without invalidating tokens.
   */
  readonly secret: string | readonly string[]
  /**
   * Where the tokens are redeemed, such as `https://app.example.com/approvals`. Tokens of another audience are refused.
   */
  readonly audience: string
  readonly clock?: Clock | undefined
}

/** The decision that a token allows. */
export interface IssueOptions {
  /** How long the token can decide, in milliseconds. Default: 24 hours. */
  readonly expiresInMs?: number | undefined
  /**
   * The person who gets the token, recorded as `by` of the decision. Without it, the caller of `decide` names the
   * person.
   */
  readonly to?: string | undefined
  /** Lets an approval run the call with another input. Default: `false`. */
  readonly mayEdit?: boolean | undefined
  /** The roles of that person, recorded with the decision: a call may need an approver with one of some roles. */
  readonly roles?: readonly string[] | undefined
}

/** The content of a token: the question, the person who was asked, and the expiry. */
export interface ApprovalClaims {
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly attempt: number
  readonly inputDigest: string
  /** Milliseconds since 1970 UTC. */
  readonly expiresAt: number
  readonly to?: string
  readonly mayEdit: boolean
  readonly roles?: readonly string[]
}

/** The decision of a person. Leave out `by` if the token names the person. */
export type TokenDecision =
  | { readonly approved: true; readonly by?: string; readonly input?: JsonObject }
  | { readonly approved: false; readonly by?: string; readonly reason: string }

/** The reason why a token is refused. */
export interface TokenRefusal {
  readonly accepted: false
  readonly code: 'invalid_token' | 'token_expired' | 'token_forbids'
  readonly message: string
}

/** Signs questions about tool calls, so that the answer can come back from a web page, a mail or a chat. */
export interface ApprovalTokens {
  /** Returns a token for one pending approval, safe in a URL. It names the call and the digest of its input, not the input. */
  issue(approval: PendingApproval, options?: IssueOptions): string
  /** Returns the claims of a token, to show them; or a refusal if it is forged, expired, or for another audience. */
  read(token: string): ApprovalClaims | TokenRefusal
  /**
   * Decides with a token, from any process: the process that drives the run takes the decision, or this runtime
   * continues the run. A question is decided once; a further decision is refused as `not_awaiting_approval`.
   */
  decide(
    runtime: Pick<Runtime, 'send'>,
    token: string,
    decision: TokenDecision,
    options?: InContext<object>,
  ): Promise<CommandAcknowledgement | TokenRefusal>
}

const minSecret = 32
const day = 24 * 60 * 60 * 1_000
const version = 'tsa1'
/** Longer than any token that `issue` returns; such a text is not hashed. */
const maxToken = 4_000
const maxName = 200

const secretText: Schema = valueThat(
  `a secret of at least ${minSecret} characters`,
  (value) => typeof value === 'string' && value.length >= minSecret,
)
const tokenOptions = fields<ApprovalTokenOptions>(
  {
    secret: (value) => (typeof value === 'string' ? secretText : listOf(secretText))(value),
    audience: filledText,
    clock: maybe(anyObject),
  },
  { key: 'secret', aud: 'audience' },
)
const name = valueThat(
  `a name of 1 to ${maxName} characters`,
  (value) =>
    typeof value === 'string' && value.trim() !== '' && value.length <= maxName && value.isWellFormed(),
)
/** An approval as a result or an event of a run holds it: its parts are safe in a token. */
const recordedApproval: Schema = valueThat('one of `pendingApprovals` of a result', (value) => {
  const { runId, toolCallId, inputDigest } = value as PendingApproval
  const isRun = typeof runId === 'string' && parseRunId(runId) !== undefined
  return isRun && parseToolCallId(toolCallId) !== undefined && /^[0-9a-f]{64}$/.test(inputDigest)
})
const issueOptions = fields<IssueOptions>(
  { expiresInMs: maybe(longTime), to: maybe(name), mayEdit: maybe(trueOrFalse), roles: maybe(listOf(name)) },
  { ttlMs: 'expiresInMs', by: 'to' },
)
const approval = fields<{ approved: true; by?: string | undefined; input?: object | undefined }>({
  approved: trueOrFalse,
  by: maybe(name),
  input: maybe(anyObject),
})
const denial = fields<{ approved: false; by?: string | undefined; reason: string }>({
  approved: trueOrFalse,
  by: maybe(name),
  reason: anyText,
})

/**
 * Makes and takes tokens that answer one approval each. A token is bound to the run, the call, its attempt, the digest of
 * its input, an audience and a time, and nothing is stored: the ledger itself decides a question only once. Each holder
 * of a token can decide, so send it to one person only. Throws `ConfigurationError` for a short secret.
 */
export function approvalTokens(options: ApprovalTokenOptions): ApprovalTokens {
  requireOptions('approvalTokens', tokenOptions, options)
  const { audience, clock = defaultHost.clock } = options
  const [signing, ...earlier] = [options.secret].flat()
  if (signing === undefined) requireOptions('approvalTokens', secretText, undefined, 'secret')
  const keys = [signing as string, ...earlier].map((secret) => utf8ToBytes(secret))
  const sign = (body: string, key: Uint8Array): string =>
    bytesToHex(hmac(sha256, key, utf8ToBytes(toCanonicalJson([version, audience, body]))))

  const read = (token: unknown): ApprovalClaims | TokenRefusal => {
    if (typeof token !== 'string' || token.length > maxToken || !token.isWellFormed()) return invalid
    const end = token.lastIndexOf('.')
    const [body, mac] = [token.slice(0, end), token.slice(end + 1)]
    if (!keys.map((key) => isSameSecret(mac, sign(body, key))).includes(true)) return invalid
    const claims = readClaims(body)
    if (claims === undefined) return invalid
    if (clock.now() < claims.expiresAt) return claims
    const message = 'The token has expired, and nothing was decided. Ask for a new one.'
    return { accepted: false, code: 'token_expired', message }
  }

  return {
    issue(pending, given = {}) {
      requireOptions('issue', shownApproval, pending, 'the approval')
      requireOptions('issue', recordedApproval, pending, 'the approval')
      requireOptions('issue', issueOptions, given)
      const { runId, toolCallId, attempt, inputDigest } = pending
      const { expiresInMs = day, to = '', mayEdit = false, roles = [] } = given
      const expiresAt = Math.ceil(clock.now() + expiresInMs)
      const fields = [runId, toolCallId, attempt, inputDigest, expiresAt, mayEdit ? 'edit' : 'as-is']
      const people = [to, ...roles].map(encodeName)
      const body = [version, ...fields, ...people].join('.')
      return `${body}.${sign(body, keys[0] as Uint8Array)}`
    },
    read,
    decide: (runtime, token, decision, own = {}) => {
      const decided = async (): ReturnType<ApprovalTokens['decide']> => {
        requireOptions('decide', anyObject, decision, 'the decision')
        requireOptions('decide', decision.approved ? approval : denial, decision, 'the decision')
        const claims = read(token)
        if ('accepted' in claims) return claims
        const { runId, to, roles, mayEdit, toolCallId, attempt, inputDigest } = claims
        const by = decision.by ?? to
        requireOptions('decide', name, by, 'by, which this token leaves to you,')
        if (to !== undefined && by !== to) {
          return refuseToken(
            'The token was given to another person, and nothing was decided. Leave `by` out.',
          )
        }
        const person = { by: by as string, ...omitUndefined({ roles }) }
        const answered = { toolCallId, attempt, inputDigest, ...person, via: 'token' }
        if (!decision.approved)
          return await runtime.send(runId, { type: 'deny', ...answered, reason: decision.reason }, own)
        const { input } = decision
        if (input !== undefined && !mayEdit) {
          return refuseToken(
            'The token allows the call only with the input that was shown. Issue one with mayEdit.',
          )
        }
        return await runtime.send(runId, { type: 'approve', ...answered, ...omitUndefined({ input }) }, own)
      }
      const unread = 'A decision with an approval token failed, and nobody waited for its answer'
      return createAnswer(decided(), (error) => defaultHost.report(error, unread))
    },
  }
}

/** Reads a signed body. `undefined` if a later version of the format signed it. */
function readClaims(body: string): ApprovalClaims | undefined {
  const [format, run = '', call = '', attempt, inputDigest = '', expiresAt, edit, to = '', ...roles] =
    body.split('.')
  const [runId, toolCallId] = [parseRunId(run), parseToolCallId(call)]
  if (format !== version || runId === undefined || toolCallId === undefined) return undefined
  return {
    runId,
    toolCallId,
    attempt: Number(attempt),
    inputDigest,
    expiresAt: Number(expiresAt),
    mayEdit: edit === 'edit',
    ...(to !== '' && { to: decodeName(to) }),
    ...(roles.length > 0 && { roles: roles.map(decodeName) }),
  }
}

/** Percent-encoding with a tilde for the percent sign, which the reader of a URL would undo; a full stop separates the parts. */
function encodeName(to: string): string {
  return encodeURIComponent(to)
    .replaceAll(/[!'()*~.]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`)
    .replaceAll('%', '~')
}

function decodeName(encoded: string): string {
  return decodeURIComponent(encoded.replaceAll('~', '%'))
}

const invalid: TokenRefusal = {
  accepted: false,
  code: 'invalid_token',
  message:
    'The token was not issued here for this audience, or was changed on its way. Nothing was decided. Open the link again as it was sent.',
}

function refuseToken(message: string): TokenRefusal {
  return { accepted: false, code: 'token_forbids', message }
}
