import { describe, expect, it } from 'vitest'
import { answerOf, openOffice, tellingAgent } from './kit/office.ts'

const order = {
  agent: 'cashier',
  input: 'Pay.',
  cron: '0 3 * * *',
  timeZone: 'Europe/Berlin',
  name: 'nightly',
}

describe('a schedule over HTTP', () => {
  it('is set once under its name, listed to those who see it, paused, and removed', async () => {
    const office = await openOffice({ agents: [tellingAgent('cashier', 'Paid.')] })
    const set = await office.send('/schedules', 'ada', order)
    expect(set.status).toBe(201)
    const { scheduleId: id, ...schedule } = await answerOf(set)
    const scheduleId = String(id)
    expect(schedule).toMatchObject({
      agent: 'cashier',
      cron: '0 3 * * *',
      missed: 'once',
      paused: false,
      owner: 'ada',
    })
    expect(await answerOf(await office.send('/schedules', 'ada', order))).toMatchObject({ scheduleId })
    // The name of another caller names another schedule.
    const ofBob = await answerOf(await office.send('/schedules', 'bob', order))
    expect(ofBob['scheduleId']).not.toBe(scheduleId)
    const listed = async (as: string): Promise<unknown[]> => {
      const { schedules } = await answerOf(await office.send('/schedules', as))
      return (schedules as { scheduleId: string; paused: boolean }[]).map((each) => [
        each.scheduleId,
        each.paused,
      ])
    }
    expect(await listed('ada')).toEqual([[scheduleId, false]])
    expect(await listed('boss')).toHaveLength(2)
    const pause = await office.send(`/runs/${scheduleId}/schedule`, 'ada', { paused: true })
    expect(await answerOf(pause)).toMatchObject({ accepted: true })
    expect(await listed('ada')).toEqual([[scheduleId, true]])
    expect((await office.send(`/runs/${scheduleId}/schedule`, 'bob', { paused: false })).status).toBe(404)
    expect((await office.send(`/runs/${scheduleId}/cancel`, 'ada', {})).status).toBe(200)
    expect(await listed('ada')).toEqual([])
    expect(office.reported).toEqual([])
  })

  it.each([
    [{ cron: '0 3 * *' }, 'configuration'],
    [{ cron: '0 3 * * *', timeZone: 'Mars/Olympus' }, 'configuration'],
    [{ cron: '0 3 * * *', every: 60_000 }, 'configuration'],
    [{ every: 5 }, 'malformed'],
    [{ every: 60_000, sessionId: 'a' }, 'malformed'],
  ])('is refused where it could not work: %o', async (times, code) => {
    const office = await openOffice({ agents: [tellingAgent('cashier', 'Paid.')] })
    const answer = await office.send('/schedules', 'boss', { agent: 'cashier', input: 'Pay.', ...times })
    expect(await answerOf(answer)).toMatchObject({ status: 400, code })
    expect(office.reported).toEqual([])
  })

  it('is left to workers by a server that drives nothing', async () => {
    const woken: string[] = []
    const engine = {
      name: 'test',
      capabilities: new Set<never>(),
      wake: async ({ runId }: { runId: string }) => void woken.push(runId),
    }
    const office = await openOffice({ agents: [tellingAgent('cashier', 'Paid.')], drives: false, engine })
    const { scheduleId } = await answerOf(await office.send('/schedules', 'boss', order))
    expect(woken).toEqual([scheduleId])
    expect(await answerOf(await office.send('/due', 'boss'))).toMatchObject({
      due: [{ runId: scheduleId, schedule: expect.stringContaining('nightly') }],
    })
    const due = await Array.fromAsync(office.ledger.due({ before: Number.MAX_SAFE_INTEGER }))
    expect(due.map(({ runId }) => runId)).toEqual([scheduleId])
  })
})
