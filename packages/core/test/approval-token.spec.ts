// A question about a tool call leaves the program as a link, and the answer comes back from anywhere. The token is the only
// proof: it must fit one question, one audience and a time, and only the secret can make or change it.
import { assert, constantFrom, nat, oneof, pre, property, record, string } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { approvalTokens, ConfigurationError, memoryLedger, type PendingApproval } from '@tallystick/core'
import { manualClock, testTool } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { newProcess } from './conversation.ts'
import { checkedRun, ofType, type Stage } from './stage.ts'
import { anyText } from '../../../scripts/testing/any-text.ts'

const secret = 'a secret of thirty-two characters'
const audience = 'https://app.example.com/approvals'
const minute = 60_000

/** A run that waits for an approval of a payment, and another process on its ledger. */
async function asked() {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const paid: unknown[] = []
  const pay = testTool({
    ...{ name: 'pay', effect: 'write' },
    check: () => ({ kind: 'ask' }),
    run: ({ input }) => (paid.push(input), 'Paid.'),
  })
  const process = (steps: NonNullable<Parameters<typeof newProcess>[0]>['steps']): Stage =>
    newProcess({ ledger, clock, tools: [pay], ...(steps && { steps }) })
  const first = process([{ toolCalls: [{ name: 'pay', input: { to: 'ada' } }] }])
  const { runId, pendingApprovals } = await first.play()
  const other = process([{ text: 'Done.' }])
  const tokens = approvalTokens({ secret, audience, clock })
  return { runId, approval: pendingApprovals[0] as PendingApproval, other, clock, tokens, paid }
}

type Asked = Awaited<ReturnType<typeof asked>>

async function decided(
  { other, tokens }: Asked,
  ...[token, decision]: [string, Parameters<typeof tokens.decide>[2]]
) {
  const answer = await other.waitUntilSettled(tokens.decide(other.runtime, token, decision))
  await other.waitUntilSettled(other.runtime.idle())
  return answer
}

describe('an approval token', () => {
  it('approves its call from another process, once, with the person on record', async () => {
    const set = await asked()
    const token = set.tokens.issue(set.approval, { to: 'ada.l@example.com' })
    expect(token).toMatch(/^[\w.~-]+$/)
    expect(set.tokens.read(token)).toEqual({
      ...{ runId: set.runId, toolCallId: set.approval.toolCallId, attempt: 1, mayEdit: false },
      ...{ inputDigest: set.approval.inputDigest, to: 'ada.l@example.com' },
      expiresAt: set.clock.now() + 24 * 60 * minute,
    })
    expect(await decided(set, token, { approved: true })).toEqual({ accepted: true })
    expect(set.paid).toEqual([{ to: 'ada' }])
    const events = checkedRun(await set.other.eventsOf(set.runId))
    expect(ofType(events, 'approval_decided')).toMatchObject([
      { approved: true, by: 'ada.l@example.com', via: 'token' },
    ])
    expect(await decided(set, token, { approved: false, reason: 'No.' })).toMatchObject({ accepted: false })
    expect(set.paid).toHaveLength(1)
  })

  it('denies with a reason, by the person that the page names, where the token does not name one', async () => {
    const set = await asked()
    const token = set.tokens.issue(set.approval)
    await expect(set.tokens.decide(set.other.runtime, token, { approved: true })).rejects.toThrow(
      ConfigurationError,
    )
    expect(await decided(set, token, { approved: false, reason: 'Too much.', by: 'bob' })).toEqual({
      accepted: true,
    })
    const events = checkedRun(await set.other.eventsOf(set.runId))
    expect(ofType(events, 'approval_decided')).toMatchObject([
      { approved: false, by: 'bob', reason: 'Too much.' },
    ])
    expect(set.paid).toEqual([])
  })

  it('decides nothing for another person, with another input, or when it has expired', async () => {
    const set = await asked()
    const token = set.tokens.issue(set.approval, { to: 'ada', expiresInMs: minute })
    expect(await decided(set, token, { approved: true, by: 'eve' })).toMatchObject({ code: 'token_forbids' })
    expect(await decided(set, token, { approved: true, input: { to: 'eve' } })).toMatchObject({
      code: 'token_forbids',
    })
    set.clock.advance(minute)
    expect(await decided(set, token, { approved: true })).toMatchObject({ code: 'token_expired' })
    expect(set.paid).toEqual([])
    const edits = set.tokens.issue(set.approval, { to: 'ada', mayEdit: true })
    expect(await decided(set, edits, { approved: true, input: { to: 'bob' } })).toEqual({ accepted: true })
    expect(set.paid).toEqual([{ to: 'bob' }])
  })

  it('of an earlier question does not answer a later one of the same call', async () => {
    const set = await asked()
    const later = set.tokens.issue({ ...set.approval, attempt: 2 })
    expect(await decided(set, later, { approved: true, by: 'ada' })).toMatchObject({ accepted: false })
    const otherInput = set.tokens.issue({ ...set.approval, inputDigest: '0'.repeat(64) })
    expect(await decided(set, otherInput, { approved: true, by: 'ada' })).toMatchObject({ accepted: false })
    expect(set.paid).toEqual([])
  })

  it('is accepted under each known secret, and under none for another audience', async () => {
    const { approval, clock, tokens } = await asked()
    const token = tokens.issue(approval)
    const newer = approvalTokens({ secret: ['x'.repeat(32), secret], audience, clock })
    expect(newer.read(token)).toMatchObject({ toolCallId: approval.toolCallId })
    expect(tokens.read(newer.issue(approval))).toMatchObject({ code: 'invalid_token' })
    for (const other of [
      approvalTokens({ secret: 'y'.repeat(32), audience, clock }),
      approvalTokens({ secret, audience: `${audience}/`, clock }),
    ]) {
      expect(other.read(token)).toMatchObject({ code: 'invalid_token' })
    }
  })

  it('survives a URL and a link in Markdown with any name', async () => {
    const { approval, tokens } = await asked()
    const names = anyText({ minLength: 1, maxLength: 60 }).filter((to) => to.trim() !== '')
    assert(
      property(oneof(names, constantFrom("o'neil (ops)!*~.", '%41 ~41', 'ä€😀', '漢'.repeat(200))), (to) => {
        const token = tokens.issue(approval, { to })
        expect(token).toMatch(/^[\w.~-]+$/)
        expect(tokens.read(new URL(`https://a.example/?t=${token}`).searchParams.get('t')!)).toMatchObject({
          to,
        })
      }),
      { numRuns: tries(100) },
    )
  })

  it('that was changed anywhere, or is any other text, is invalid', async () => {
    const { approval, tokens } = await asked()
    const token = tokens.issue(approval, { to: 'ada' })
    const change = record({ at: nat(token.length), cut: nat(3), add: string({ maxLength: 3 }) })
    assert(
      property(change, ({ at, cut, add }) => {
        const changed = token.slice(0, at) + add + token.slice(at + cut)
        pre(changed !== token)
        expect(tokens.read(changed)).toMatchObject({ code: 'invalid_token' })
      }),
      { numRuns: tries(300) },
    )
    for (const text of ['', '.', 'tsa1', '\ud800.', 'x'.repeat(100_000), undefined as unknown as string]) {
      expect(tokens.read(text)).toMatchObject({ code: 'invalid_token' })
    }
  })

  it('is not made of what no run has asked, nor with a secret that can be guessed', async () => {
    const { approval, tokens } = await asked()
    for (const wrong of [
      { secret: 'short', audience },
      { secret: [], audience },
      { secret, audience: ' ' },
      { secret, audience, ttl: 5 },
    ]) {
      expect(() => approvalTokens(wrong)).toThrow(ConfigurationError)
    }
    for (const wrong of [
      { ...approval, runId: 'a.b' },
      { ...approval, toolCallId: 'call' },
      { ...approval, inputDigest: 'a.b' },
      { ...approval, attempt: 0 },
    ]) {
      expect(() => tokens.issue(wrong as PendingApproval)).toThrow(ConfigurationError)
    }
    expect(() => tokens.issue(approval, { expiresInMs: Number.NaN })).toThrow(ConfigurationError)
    expect(() => tokens.issue(approval, { to: ' ' })).toThrow(ConfigurationError)
  })
})
