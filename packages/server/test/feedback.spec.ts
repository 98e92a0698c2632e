import { describe, expect, it } from 'vitest'
import { RunChatTransport } from '@tallystick/server/client'
import { answerOf, framesOf, openOffice, payingAgent, tellingAgent } from './kit/office.ts'

describe('feedback over HTTP', () => {
  it('is recorded under the name of the caller, once for an idempotency key', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Good.')] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const key = { 'idempotency-key': 'vote' }
    const give = async (score: number) =>
      await answerOf(await office.send(`/runs/${runId}/feedback`, 'boss', { score, note: 'Good.' }, key))
    for (let time = 0; time < 2; time++) expect(await give(1)).toEqual({ status: 200, accepted: true })
    expect(await give(0)).toMatchObject({ status: 409, code: 'ledger_conflict', kind: 'unique' })
    const events = await Array.fromAsync(office.ledger.read(runId as never))
    expect(events.filter(({ type }) => type === 'feedback_given')).toMatchObject([
      { by: 'boss', score: 1, note: 'Good.' },
    ])
    const listed = async (query: string) =>
      ((await answerOf(await office.send(`/runs?${query}`))) as unknown as { runs: unknown[] }).runs.length
    expect(await listed('minScore=0.5')).toBe(1)
    expect(await listed('maxScore=0.5')).toBe(0)
    expect(await listed('feedbackBy=boss')).toBe(1)
    expect(await listed('feedbackBy=ada')).toBe(0)
    expect(await answerOf(await office.send('/runs?minScore=high'))).toMatchObject({ status: 400 })
    expect(await answerOf(await office.send('/runs?minScore=0x10'))).toMatchObject({ status: 400 })
    expect(office.reported).toEqual([])
  })

  it('follows the end of the run in its stream, which ends there for every reader', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Good.')] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    for (const score of [0, 1]) await office.send(`/runs/${runId}/feedback`, 'boss', { score })
    const headers = { accept: 'text/event-stream' }
    const ids = async (after: number): Promise<readonly (string | undefined)[]> => {
      const response = await office.send(`/runs/${runId}/events?after=${after}`, 'boss', undefined, headers)
      if (response.status === 204) return []
      return (await Array.fromAsync(framesOf(response))).map(({ id }) => id)
    }
    const all = await ids(0)
    for (let after = 0; after <= all.length; after++) expect(await ids(after)).toEqual(all.slice(after))
  })

  it.each([
    [{}, 400],
    [{ score: 'high' }, 400],
    [{ score: 1, by: 'someone else' }, 400],
    [{ score: 1 }, 409],
  ])('is refused where it says nothing, or comes too early: %j', async (body, status) => {
    const office = await openOffice({ agents: [payingAgent('cashier')] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    expect((await office.send(`/runs/${runId}/feedback`, 'boss', body)).status).toBe(status)
  })

  it('is given by a chat about the run of a message', async () => {
    const office = await openOffice({ agents: [tellingAgent('teller', 'Good.')] })
    const runId = await office.start('boss')
    await office.send(`/runs/${runId}/result?waitMs=20000`)
    const headers = { authorization: 'Bearer boss' }
    const transport = new RunChatTransport({ api: `${office.listening.url}/chat/teller`, headers })
    await transport.feedback(runId, { score: 1, note: 'Good.' })
    await expect(transport.feedback(runId, {})).rejects.toThrow('a score, a note, or both')
    await expect(new RunChatTransport({ api: '/api/chat' }).feedback(runId, { score: 1 })).rejects.toThrow(
      '/chat/AGENT',
    )
    const last = (await Array.fromAsync(office.ledger.read(runId as never))).at(-1)
    expect(last).toMatchObject({ type: 'feedback_given', by: 'boss', score: 1 })
  })
})
