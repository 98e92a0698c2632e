// Edits of a session: what its next run begins with, each a run on record.
import { describe, expect, it } from 'vitest'
import {
  createRuntime,
  defineAgent,
  defineGuardrail,
  joinText,
  LedgerConflictError,
  LedgerUnavailableError,
  memoryLedger,
  type Ledger,
  type Message,
  type OnInput,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { checkedRun, ofType, recorded, typesOf } from './stage.ts'

const said = (messages: readonly Message[] = []): readonly string[] =>
  messages.map((message) => (message.role === 'tool' ? 'results' : joinText(message.parts)))

/** A process over a ledger, whose agent answers with the number of messages that it saw. */
function process(ledger: Ledger, options: Partial<Parameters<typeof defineAgent>[0]> = {}) {
  const clock = manualClock()
  const reported: unknown[] = []
  const model = scriptedModel(
    Array.from({ length: 20 }, () => ({ messages }: { messages: readonly Message[] }) => ({
      text: `${messages.length} seen.`,
    })),
  )
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model, ...options })
  const runtime = createRuntime({
    ledger,
    agents: [agent],
    host: { clock, report: (...said) => void reported.push(said) },
  })
  const settle = <T>(promise: Promise<T>): Promise<T> => waitUntilSettled(clock, promise)
  const session = runtime.session('chat')
  const play = async (input: string, own: object = {}) => {
    const run = runtime.run(agent, input, { sessionId: 'chat', ...own })
    return await settle(run.result)
  }
  const history = async () => said((await settle(session.history()))?.messages)
  return { clock, model, agent, runtime, reported, settle, session, play, history }
}

async function runsOf(ledger: Ledger) {
  const runs = []
  for await (const { runId } of ledger.runs({ sessionId: 'chat' }))
    runs.unshift(checkedRun(await recorded(ledger, runId)))
  return runs
}

describe('a session', () => {
  it('gets messages added, taken back and cleared, each on record with who did it and why', async () => {
    const ledger = memoryLedger()
    const { session, play, history, settle, model, reported } = process(ledger)
    const added = await settle(
      session.append({ role: 'user', content: 'The dentist is at nine.' }, { by: 'ada', reason: 'by phone' }),
    )
    expect(said(added?.messages)).toEqual(['The dentist is at nine.'])
    await play('When?')
    expect(await history()).toEqual(['The dentist is at nine.', 'When?', '2 seen.'])
    expect(said(await settle(session.pop()))).toEqual(['2 seen.'])
    expect(said(await settle(session.pop()))).toEqual(['When?'])
    await settle(
      session.append([
        { role: 'user', content: 'And?' },
        { role: 'assistant', content: 'At ten.' },
      ]),
    )
    await play('Sure?')
    expect(said(model.requests[1]?.messages)).toEqual(['The dentist is at nine.', 'And?', 'At ten.', 'Sure?'])
    expect(said(await settle(session.clear({ by: 'ada' })))).toHaveLength(5)
    expect(await history()).toEqual([])
    expect([await settle(session.pop()), await settle(session.clear())]).toEqual([[], []])
    await play('Who are you?')
    expect(said(model.requests[2]?.messages)).toEqual(['Who are you?'])
    expect(reported).toEqual([])
    const runs = await runsOf(ledger)
    const edits = runs.flatMap((events) => ofType(events, 'session_edited'))
    expect(edits.map(({ edit, by, reason, count }) => [edit, by, reason, count])).toEqual([
      ['append', 'ada', 'by phone', undefined],
      ['pop', undefined, undefined, 1],
      ['pop', undefined, undefined, 1],
      ['append', undefined, undefined, undefined],
      ['clear', 'ada', undefined, 5],
    ])
    expect(runs.map((events) => ofType(events, 'run_started')[0]?.sessionPlace)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8,
    ])
    expect(typesOf(runs[2]!)).toEqual(['run_started', 'history_carried', 'session_edited', 'run_finished'])
    // What was taken stays where it was said.
    expect(
      said(
        ofType(runs[1]!, 'assistant_message_finished').map(
          (event) => ({ role: 'assistant', ...event }) as never,
        ),
      ),
    ).toEqual(['2 seen.'])
  })

  it('gives a call back together with its result, and takes no messages that no provider would', async () => {
    const ledger = memoryLedger()
    const look = testTool({ name: 'look' })
    const model = scriptedModel([{ toolCalls: [{ name: 'look', input: {} }] }, { text: 'Warm.' }])
    const set = process(ledger, { tools: [look], model })
    await set.play('How warm?')
    expect(said(await set.settle(set.session.pop()))).toEqual(['Warm.'])
    const [asked, results] = await set.settle(set.session.pop())
    expect([asked?.role, results?.role]).toEqual(['assistant', 'tool'])
    expect(await set.history()).toEqual(['How warm?'])
    await expect(set.session.append(results!)).rejects.toThrow('cannot be added to session chat')
    await expect(set.session.append({ role: 'user', content: '' })).rejects.toThrow('is empty')
    await expect(set.session.append('hello' as never)).rejects.toThrow('The input of a run cannot be shown')
    await set.settle(set.session.append([asked!, results!]))
    expect(await set.history()).toEqual(['How warm?', '', 'results'])
  })

  it('has what was added checked by input guardrails, once, when a run begins', async () => {
    const ledger = memoryLedger()
    const checked: string[] = []
    const guardrail = defineGuardrail({
      name: 'watch',
      on: 'input',
      check: ({ text }) => {
        checked.push(text)
        return text.includes('secret') ? { replace: '…' } : 'pass'
      },
    })
    const set = process(ledger, { guardrails: [guardrail] })
    await set.play('Hello.')
    await set.settle(set.session.append({ role: 'user', content: 'A secret.' }))
    await set.settle(set.session.append({ role: 'user', content: 'More.' }))
    await set.settle(set.session.pop())
    await set.play('Go on.')
    expect(checked).toEqual(['Hello.', 'A secret.', 'Go on.'])
    expect(said(set.model.requests[1]?.messages)).toEqual(['Hello.', '1 seen.', '…', 'Go on.'])
    await set.play('Again.')
    expect(checked).toEqual(['Hello.', 'A secret.', 'Go on.', 'Again.'])
  })

  it('branches, and neither of the two sees what is done to the other', async () => {
    const ledger = memoryLedger()
    const set = process(ledger)
    const first = await set.play('One.')
    await set.play('Two.')
    const branch = await set.settle(set.session.branch('other', { runId: first.runId, by: 'ada' }))
    const whole = await set.settle(set.session.branch('whole'))
    await set.settle(branch.append({ role: 'user', content: 'Only here.' }))
    await set.settle(set.session.clear())
    expect(said((await branch.history())?.messages)).toEqual(['One.', '1 seen.', 'Only here.'])
    expect(said((await whole.history())?.messages)).toEqual(['One.', '1 seen.', 'Two.', '3 seen.'])
    expect(await set.history()).toEqual([])
    for await (const { runId } of ledger.runs()) checkedRun(await recorded(ledger, runId))
    await expect(set.session.branch('other')).rejects.toThrow('Session other has begun already')
    await expect(branch.branch('third', { runId: first.runId })).rejects.toThrow('is not of session other')
    await expect(set.runtime.session('none').branch('fourth')).rejects.toThrow('nothing to branch from')
  })

  it('is edited by a process that knows none of its agents, and is listed under the agent of the run before', async () => {
    const ledger = memoryLedger()
    const set = process(ledger, {
      guardrails: [defineGuardrail({ name: 'w', on: 'input', check: () => 'pass' })],
    })
    await set.play('Hello.', { subject: 'ada' })
    const clerk = createRuntime({ ledger, host: { clock: set.clock, report: () => {} } }).session('chat')
    await set.settle(clerk.append({ role: 'user', content: 'More.' }, { owner: 'bob', agent: 'other' }))
    const [last] = (await runsOf(ledger)).slice(-1)
    expect(last?.[0]).toMatchObject({ agent: 'agent', subject: 'ada', owner: 'bob' })
    const fresh = createRuntime({ ledger, host: { clock: set.clock, report: () => {} } }).session('new')
    await set.settle(fresh.append({ role: 'user', content: 'Hi.' }, { subject: 'cem', agent: 'desk' }))
    const [first] = await Array.fromAsync(fresh.runs())
    expect((await recorded(ledger, first!.runId))[0]).toMatchObject({ agent: 'desk', subject: 'cem' })
  })

  it('is not edited under a run that is under way, or waits for a person, unless the edit waits', async () => {
    const ledger = memoryLedger()
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const model = scriptedModel([{ toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }])
    const set = process(ledger, { tools: [pay], model })
    const run = set.runtime.run(set.agent, 'Pay.', { sessionId: 'chat' })
    const { pendingApprovals } = await set.settle(run.result)
    const refused: unknown = await set.settle(set.session.pop().catch((error: unknown) => error))
    expect(refused).toBeInstanceOf(LedgerConflictError)
    expect(refused).toMatchObject({ kind: 'session', busy: { runId: run.id, status: 'suspended' } })
    const later = set.session.pop({ whenBusy: 'wait' })
    await set.settle(run.approve(pendingApprovals[0]!, { by: 'ada' }))
    expect(said(await set.settle(later))).toEqual(['Paid.'])
  })

  it('takes the edits of two processes at once one after the other, and loses none', async () => {
    const ledger = memoryLedger()
    const [one, two] = [process(ledger), process(ledger)]
    await one.play('Hello.')
    const add = (text: string) => ({ role: 'user', content: text }) as const
    const texts = ['a', 'b', 'c', 'd', 'e', 'f']
    await one.settle(
      Promise.all(texts.map((text, index) => (index % 2 === 0 ? one : two).session.append(add(text)))),
    )
    expect((await one.history()).slice(2).toSorted()).toEqual(texts)
    const [mine, theirs] = await one.settle(Promise.all([one.session.pop(), two.session.pop()]))
    expect(said(mine)).not.toEqual(said(theirs))
    expect(await two.history()).toHaveLength(6)
    const runs = await runsOf(ledger)
    const places = runs.map((events) => ofType(events, 'run_started')[0]?.sessionPlace)
    expect(places).toEqual(runs.map((_, index) => index + 1))
  })

  it('has an edit whole or not at all, wherever its process ends', async () => {
    let appends = 0
    for (const isWritten of [false, true]) {
      const ledger = memoryLedger()
      const before = process(ledger)
      await before.play('Hello.')
      const append: Ledger['append'] = async (...given) => {
        appends++
        if (isWritten) await ledger.append(...given)
        throw new LedgerUnavailableError('The process has died.')
      }
      const dying = process(Object.assign(Object.create(ledger) as Ledger, { append }))
      await dying.settle(dying.session.pop().catch(() => undefined))
      const after = process(ledger)
      const left = await after.history()
      expect([['Hello.'], ['Hello.', '1 seen.']]).toContainEqual(left)
      const runs = await runsOf(ledger)
      expect(runs.at(-1)?.at(-1)?.type).toBe('run_finished')
      expect(left).toHaveLength(isWritten ? 1 : 2)
      await after.play('Go on.')
      expect(said(after.model.requests[0]?.messages)).toEqual([...left, 'Go on.'])
    }
    // All of an edit is one append.
    expect(appends).toBe(2)
  })

  it('is edited where its history was compacted', async () => {
    const ledger = memoryLedger()
    const compaction = { maxContextTokens: 300, keepMessages: 2, summarize: () => 'They said hello.' }
    const set = process(ledger, { compaction })
    for (const text of ['One. ', 'Two. ', 'Three. ']) await set.play(text.repeat(100))
    const before = await set.history()
    expect(before.some((text) => text.includes('They said hello.'))).toBe(true)
    await set.settle(set.session.pop())
    expect(await set.history()).toEqual(before.slice(0, -1))
    await set.settle(set.session.append({ role: 'assistant', content: 'Better.' }))
    await set.play('Four.')
    for (const events of await runsOf(ledger)) expect(events.at(-1)?.type).toBe('run_finished')
  })
})

describe('onInput of a run', () => {
  it('says what the run begins with, and is on record: no resume calls it again', async () => {
    const ledger = memoryLedger()
    const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
    const steps = [{ text: 'One.' }, { toolCalls: [{ name: 'pay', input: {} }] }]
    const set = process(ledger, { tools: [pay], model: scriptedModel(steps) })
    await set.play('First.')
    let calls = 0
    const onInput: OnInput = async (history, input) => {
      calls++
      return [{ role: 'user', content: `${history.length} messages before.` }, input]
    }
    const { runId, pendingApprovals } = await set.play('Second.', { onInput })
    const events = checkedRun(await recorded(ledger, runId))
    expect(said(ofType(events, 'history_carried')[0]?.messages)).toEqual(['2 messages before.'])
    expect(ofType(events, 'history_carried')[0]?.uncheckedFrom).toBe(0)
    expect(ofType(events, 'input_received')[0]).toMatchObject({
      message: { parts: [{ text: 'Second.' }] },
      onInput: { name: 'onInput', digest: expect.any(String) },
    })
    const other = process(ledger, { tools: [pay], model: scriptedModel([{ text: 'Paid.' }]) })
    await other.settle(other.runtime.resume(runId).approve(pendingApprovals[0]!, { by: 'ada' }))
    await other.settle(other.runtime.resume(runId).result)
    expect(calls).toBe(1)
    expect(await other.history()).toEqual(['2 messages before.', 'Second.', '', 'results', 'Paid.'])
  })

  it('starts once under a key, whatever it made of the input', async () => {
    const ledger = memoryLedger()
    const own = { idempotencyKey: 'k', onInput: (() => [{ role: 'user', content: 'Other.' }]) as OnInput }
    const first = await process(ledger).play('Go.', own)
    const again = await process(ledger).play('Go.', own)
    expect(again.runId).toBe(first.runId)
    expect(said(again.messages)).toEqual(['Other.', '1 seen.'])
  })

  it('is refused where it throws, or returns what no model could be shown', async () => {
    const ledger = memoryLedger()
    const set = process(ledger)
    const faults: readonly (readonly [OnInput, string])[] = [
      [() => Promise.reject(new Error('no past today')), 'onInput of the run failed: no past today'],
      [() => 'x' as never, 'returned no list of messages'],
      [() => [], 'returned no list of messages'],
      [() => [{ role: 'assistant', content: 'Hm.' }], 'its last message, at 0, has the role assistant'],
    ]
    for (const [onInput, why] of faults)
      await expect(set.settle(set.play('Go.', { onInput }))).rejects.toThrow(why)
    for await (const record of ledger.runs()) throw new Error(`run ${record.runId} was written`)
    const edit = { of: 'x', edits: [] }
    expect(() => set.runtime.run(set.agent, 'Go.', { onInput: () => [], edit })).toThrow(
      'onInput together with edit',
    )
  })
})
