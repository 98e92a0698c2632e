import { defineAgent } from '@tallystick/core'
import { scriptedModel, testTool } from '@tallystick/testkit'
import type { Principal } from '@tallystick/server'
import { describe, expect, it } from 'vitest'
import { answerOf, openOffice, type Office } from './kit/office.ts'

const finance = { sees: 'everything', roles: ['finance'] } as const
const people: Readonly<Record<string, Principal>> = {
  ...{
    olga: { name: 'olga', ...finance },
    ann: { name: 'ann', ...finance },
    ben: { name: 'ben', ...finance },
  },
  carl: { name: 'carl', sees: 'everything', roles: ['sales'] },
}

function openBank(): Promise<Office> {
  const approvers = [{ count: 2, roles: ['finance'] }]
  const pay = testTool({
    name: 'pay',
    effect: 'write',
    check: () => ({ kind: 'ask', approvers }),
    run: () => 'paid',
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: { usd: 5 } }] }, { text: 'Paid.' }])
  return openOffice({
    agents: [defineAgent({ name: 'office', instructions: 'Pay.', model, tools: [pay] })],
    authorize: (request) => people[request.headers.get('authorization')?.slice('Bearer '.length) ?? ''],
  })
}

describe('a call that two people have to approve', () => {
  it('is refused to a caller without the role, to the one who started it, and to one person twice', async () => {
    const office = await openBank()
    const runId = await office.start('olga')
    const result = async () => await answerOf(await office.send(`/runs/${runId}/result?waitMs=20000`, 'ann'))
    const [asked] = (await result())['pendingApprovals'] as readonly Record<string, unknown>[]
    expect(asked).toMatchObject({ approvers: [{ count: 2, roles: ['finance'] }] })
    const { toolCallId } = asked!
    const decide = async (as: string, body: object = {}) =>
      await answerOf(await office.send(`/runs/${runId}/approve`, as, { toolCallId, ...body }))
    expect(await decide('carl')).toMatchObject({
      status: 403,
      code: 'not_an_approver',
      detail: expect.stringContaining('one of these roles: finance'),
    })
    expect(await decide('olga')).toMatchObject({ status: 403, code: 'not_an_approver' })
    expect(await decide('carl', { roles: ['finance'] })).toMatchObject({ status: 400, code: 'malformed' })
    expect(await decide('ann')).toMatchObject({ status: 200, accepted: true })
    expect(await decide('ann')).toMatchObject({ status: 409, code: 'approved_before' })
    expect(await result()).toMatchObject({
      pendingApprovals: [{ approvals: [{ by: 'ann', roles: ['finance'] }] }],
    })
    expect(await decide('ben')).toMatchObject({ status: 200 })
    expect(await result()).toMatchObject({ text: 'Paid.' })
  })
})
