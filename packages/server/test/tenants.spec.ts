import { describe, expect, it } from 'vitest'
import { answerOf, openOffice, tellingAgent, type Office } from './kit/office.ts'

/** Two tenants that each have a user of one name: the token of a request is the tenant. */
async function openTenants(): Promise<Office> {
  return await openOffice({
    agents: [tellingAgent('teller', 'One.', 'Two.', 'Three.', 'Four.')],
    authorize: (request) => {
      const tenant = request.headers.get('authorization')?.slice('Bearer '.length) ?? ''
      return { name: 'Ann Smith', sees: { subjects: [tenant] } }
    },
  })
}

describe('given two tenants with a user of the same name, when both send the same', () => {
  it('then a key of one is not a key of the other, on every route that takes one', async () => {
    const office = await openTenants()
    const key = { 'idempotency-key': 'k1' }
    const messages = [{ role: 'user', content: 'Hi.' }]
    const bodies: readonly (readonly [path: string, body: object, id: (answer: object) => unknown])[] = [
      ['/runs', { agent: 'teller', input: 'Hi.' }, (answer) => Object(answer).runId],
      ['/v1/chat/completions', { model: 'teller', messages }, (answer) => Object(answer).id],
    ]
    for (const [path, body, idOf] of bodies) {
      const own = { 'idempotency-key': `${key['idempotency-key']}${path}` }
      const send = async (tenant: string) => await answerOf(await office.send(path, tenant, body, own))
      const [one, again, other] = [await send('north'), await send('north'), await send('south')]
      expect([one.status, idOf(again)]).toEqual([other.status, idOf(one)])
      expect(idOf(other)).not.toBe(idOf(one))
    }
  })

  it('then a place in a list of one opens nothing for the other', async () => {
    const office = await openTenants()
    await office.start('north')
    const { after } = await answerOf(await office.send('/events', 'south'))
    expect(after).toMatch(/^sealed:/)
    const at = `/events?after=${encodeURIComponent(String(after))}`
    expect((await office.send(at, 'south')).status).toBe(200)
    expect((await office.send(at, 'west')).status).toBe(400)
  })
})
