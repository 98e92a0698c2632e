// Where a token, its claims and its options begin and end: what was signed with the right secret is read as it says, or not at all.
import { createHmac } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { approvalTokens, ConfigurationError, type PendingApproval } from '@tallystick/core'
import { toCanonicalJson } from '@tallystick/core/vocabulary'
import { manualClock, sampleCallId, sampleRunId } from '@tallystick/testkit'

const secret = 's'.repeat(32)
const audience = 'https://app.example.com/approvals'
const clock = manualClock(1_000_000)
const tokens = approvalTokens({ secret, audience, clock })
const runId = sampleRunId(1)
const toolCallId = sampleCallId(runId)
const inputDigest = '0123456789abcdef'.repeat(4)
const approval = { runId, toolCallId, inputDigest, name: 'pay', attempt: 3, input: {} } as PendingApproval
const day = 24 * 60 * 60 * 1_000

/** Signs these parts as a holder of the secret could. */
function signed(parts: readonly (string | number)[]): string {
  const body = parts.join('.')
  const mac = createHmac('sha256', secret)
    .update(toCanonicalJson(['tsa1', audience, body]))
    .digest('hex')
  return `${body}.${mac}`
}

const parts = ['tsa1', runId, toolCallId, 3, inputDigest, 1_000_000 + day, 'as-is', ''] as const
const withPart = (place: number, part: string | number) => signed(parts.with(place, part))

describe('the claims of a token', () => {
  it('are what was signed, made by any process with the secret', () => {
    const claims = { runId, toolCallId, attempt: 3, inputDigest, expiresAt: 1_000_000 + day, mayEdit: false }
    expect(tokens.issue(approval)).toBe(signed(parts))
    expect(tokens.read(signed(parts))).toStrictEqual(claims)
    expect(tokens.read(withPart(7, 'ada'))).toStrictEqual({ ...claims, to: 'ada' })
    expect(tokens.read(withPart(7, 'a~2Eb'))).toStrictEqual({ ...claims, to: 'a.b' })
    expect(tokens.read(withPart(6, 'edit'))).toStrictEqual({ ...claims, mayEdit: true })
    expect(tokens.read(signed(parts.slice(0, 7)))).toStrictEqual(claims)
  })

  it.each<readonly [string, string]>([
    ['of another version', withPart(0, 'tsa2')],
    ['of no run', withPart(1, 'run')],
    ['of no call', withPart(2, 'call')],
    ['of a version alone', signed(['tsa1'])],
    ['of nothing', signed([''])],
  ])('are undefined where a text %s was signed', (_what, token) => {
    expect(tokens.read(token)).toEqual({
      accepted: false,
      code: 'invalid_token',
      message:
        'The token was not issued here for this audience, or was changed on its way. Nothing was decided. Open the link again as it was sent.',
    })
  })

  it('expire in the millisecond that was signed', () => {
    expect(tokens.read(withPart(5, 1_000_001))).toMatchObject({ runId })
    for (const expiresAt of [1_000_000, 999_999, 'never']) {
      expect(tokens.read(withPart(5, expiresAt))).toEqual({
        accepted: false,
        code: 'token_expired',
        message: 'The token has expired, and nothing was decided. Ask for a new one.',
      })
    }
  })

  it('are not read from a text that is longer than any token', () => {
    const token = withPart(7, 'a'.repeat(4_000 - signed(parts).length))
    expect(token).toHaveLength(4_000)
    expect(tokens.read(token)).toMatchObject({ runId })
    expect(tokens.read(withPart(7, 'a'.repeat(4_001 - signed(parts).length)))).toMatchObject({
      code: 'invalid_token',
    })
  })
})

describe('the options of tokens', () => {
  it('take a secret from 32 characters on, or a list of such, and an audience', () => {
    expect(() => approvalTokens({ secret: ['x'.repeat(32)], audience: 'a' })).not.toThrow()
    for (const [wrong, message] of [
      [{ secret: 'x'.repeat(31), audience }, /secret is a text; expected a secret of at least 32 characters/],
      [
        { secret: Array.from({ length: 40 }, () => 'x'), audience },
        /secret\[0\] is a text; expected a secret/,
      ],
      [{ secret: [secret, { length: 40 }], audience }, /secret\[1\] is an object; expected a secret/],
      [{ secret: [], audience }, /secret is missing/],
      [{ secret: { length: 40 }, audience }, /secret is an object; expected a list/],
      [{ secret, audience: '' }, /audience is an empty text/],
      [{ secret, audience, clock: 7 }, /clock is 7/],
    ] as const) {
      expect(() => approvalTokens(wrong as never)).toThrow(message)
      expect(() => approvalTokens(wrong as never)).toThrow(ConfigurationError)
    }
  })

  it('of one token take a name of 1 to 200 characters, and a time', () => {
    const issue = (options: object) => () => tokens.issue(approval, options)
    for (const to of ['a', 'a'.repeat(200)]) expect(issue({ to })).not.toThrow()
    for (const to of ['', ' ', 'a'.repeat(201), '\ud800', 7, ['ada']])
      expect(issue({ to })).toThrow(/issue: to is .* expected a name of 1 to 200 characters/)
    for (const mayEdit of [1, 'true']) expect(issue({ mayEdit })).toThrow(/mayEdit is/)
    const expiry = tokens.read(tokens.issue(approval, { expiresInMs: 1.5 }))
    expect(expiry).toMatchObject({ expiresAt: 1_000_002 })
  })

  it.each<readonly [string, object]>([
    ['runId', { runId: 7 }],
    ['runId', { runId: 'r' }],
    ['toolCallId', { toolCallId: 'c' }],
    ['inputDigest', { inputDigest: 'a'.repeat(63) }],
    ['inputDigest', { inputDigest: 'a'.repeat(65) }],
    ['inputDigest', { inputDigest: `.${'a'.repeat(64)}` }],
    ['inputDigest', { inputDigest: 'A'.repeat(64) }],
  ])('name no approval with another %s: %j', (_field, other) => {
    expect(() => tokens.issue({ ...approval, ...other })).toThrow(ConfigurationError)
  })
})

describe('a decision by a token', () => {
  const sent: unknown[][] = []
  const runtime = {
    send: async (...given: unknown[]) => {
      sent.push(given)
      return { accepted: true as const }
    },
  }
  const decide = async (token: string, decision: object, own?: object) => {
    sent.length = 0
    return await tokens.decide(runtime, token, decision as never, own)
  }
  const answered = { toolCallId, attempt: 3, inputDigest, via: 'token' }

  it('is sent as the command that it means', async () => {
    const own = tokens.issue(approval, { to: 'ada', mayEdit: true })
    expect(await decide(own, { approved: true })).toEqual({ accepted: true })
    expect(sent).toStrictEqual([[runId, { type: 'approve', ...answered, by: 'ada' }, {}]])
    await decide(own, { approved: true, by: 'ada', input: { to: 'bob' } }, { context: 7 })
    expect(sent).toStrictEqual([
      [runId, { type: 'approve', ...answered, by: 'ada', input: { to: 'bob' } }, { context: 7 }],
    ])
    await decide(own, { approved: false, reason: 'No.' })
    expect(sent).toStrictEqual([[runId, { type: 'deny', ...answered, by: 'ada', reason: 'No.' }, {}]])
    await decide(tokens.issue(approval), { approved: true, by: 'eve' })
    expect(sent).toStrictEqual([[runId, { type: 'approve', ...answered, by: 'eve' }, {}]])
  })

  it('refuses another person, and another input than was shown, and says why', async () => {
    const own = tokens.issue(approval, { to: 'ada' })
    expect(await decide(own, { approved: true, by: 'eve' })).toEqual({
      accepted: false,
      code: 'token_forbids',
      message: 'The token was given to another person, and nothing was decided. Leave `by` out.',
    })
    expect(await decide(own, { approved: true, input: {} })).toEqual({
      accepted: false,
      code: 'token_forbids',
      message: 'The token allows the call only with the input that was shown. Issue one with mayEdit.',
    })
    expect(sent).toEqual([])
  })

  it('is refused where there is no token, before one is read', async () => {
    for (const [decision, message] of [
      [undefined, /the decision is missing/],
      [{ approved: 'yes' }, /approved is a text/],
      [{ approved: false }, /reason is missing/],
      [{ approved: true, reason: 'x' }, /reason is not an option/],
      [{ approved: true, input: 7 }, /input is 7/],
      [{ approved: true, by: '' }, /by is an empty text/],
      [{ approved: false, reason: 'x', by: '' }, /by is an empty text/],
    ] as const) {
      await expect(decide('x', decision as never)).rejects.toThrow(message)
    }
    await expect(decide(tokens.issue(approval), { approved: true })).rejects.toThrow(
      /decide: by, which this token leaves to you, is missing/,
    )
    expect(await decide('x', { approved: true })).toMatchObject({ code: 'invalid_token' })
  })

  it('that cannot be made is reported where nobody waits for its answer, and ends no process', async () => {
    const report = vi.spyOn(console, 'error').mockImplementation(() => {})
    void tokens.decide(runtime, 'x', {} as never)
    await new Promise(setImmediate)
    expect(report.mock.calls).toEqual([
      [expect.stringContaining('nobody waited for its answer'), expect.any(ConfigurationError)],
    ])
    report.mockRestore()
  })
})
