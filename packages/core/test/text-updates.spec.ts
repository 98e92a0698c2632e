import { firstValueFrom, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  createRuntime,
  defineAgent,
  type Guardrail,
  memoryLedger,
  type RunStreams,
  joinText,
} from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  waitUntilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/testkit'
import { ofType, stage, type StageOptions } from './stage.ts'

/** What a reader of a stream of pieces has on the screen at the end, and everything that was on it. */
async function read(
  streams: RunStreams,
): Promise<{ texts: readonly string[]; screen: string; seen: string }> {
  const texts = await firstValueFrom(streams.text$.pipe(toArray()))
  let screen = ''
  let seen = ''
  for (const { type, text } of await firstValueFrom(streams.textUpdates$.pipe(toArray()))) {
    expect(type === 'text' || screen.endsWith(text)).toBe(true)
    screen = type === 'text' ? screen + text : screen.slice(0, -text.length)
    seen += type === 'text' ? text : `⟨-${text.length}⟩`
  }
  return { texts, screen, seen }
}

async function played(options: StageOptions): ReturnType<typeof read> {
  const set = stage(options)
  const run = set.start()
  await set.waitUntilSettled(run.result)
  return await read(run)
}

const cut: ScriptedStep = { text: 'The balance is 12', fail: 'network' }

describe('the text of a call that failed and was made again', () => {
  it('is not in text$, and is taken back in textUpdates$', async () => {
    const { texts, screen, seen } = await played({ steps: [cut, { text: 'The balance is 99 euros.' }] })
    expect(texts).toEqual(['The balance is 99 euros.'])
    expect(screen).toBe('The balance is 99 euros.')
    expect(seen).toBe('The balance is 12⟨-17⟩The balance is 99 euros.')
  })

  it('is taken back for another model as well', async () => {
    const fallback = scriptedModel([{ text: 'It is 99.' }], 'other')
    const steps: readonly ScriptedStep[] = [{ text: 'It is 1', fail: 'authentication' }]
    const { texts, screen } = await played({ steps, fallbacks: [fallback] })
    expect([texts, screen]).toEqual([['It is 99.'], 'It is 99.'])
  })

  it('stays where no other attempt follows: it is kept as far as it came', async () => {
    const { texts, screen } = await played({ steps: [cut], retry: { maxAttempts: 1 } })
    expect([texts, screen]).toEqual([['The balance is 12'], 'The balance is 12'])
    const kept = await played({
      steps: [{ text: 'So far', hang: true }],
      limits: { maxDurationMs: 50, onLimit: 'stop' },
    })
    expect(kept).toMatchObject({ texts: ['So far'], screen: 'So far' })
  })
})

describe('the text of an answer', () => {
  const output = (says: 'block' | 'replace' | 'pass'): Guardrail => ({
    ...{ name: 'manners', on: 'output' },
    check: () => (says === 'pass' ? 'pass' : says === 'block' ? { block: 'rude' } : { replace: 'Polite.' }),
  })

  it('comes when guardrails have passed it, and is theirs where they replace it', async () => {
    const steps = [{ text: 'Rude.' }]
    expect(await played({ steps, guardrails: [output('pass')] })).toMatchObject({
      texts: ['Rude.'],
      seen: 'Rude.',
    })
    const replaced = await played({ steps, guardrails: [output('replace')] })
    expect(replaced).toEqual({ texts: ['Polite.'], screen: 'Polite.', seen: 'Rude.⟨-5⟩Polite.' })
    const blocked = await played({ steps, guardrails: [output('block')] })
    const withheld = 'The guardrail manners withheld this.'
    expect(blocked).toMatchObject({ texts: [withheld], screen: withheld })
  })

  it('is withheld where the time of the run is up before its guardrail has answered', async () => {
    const slow: Guardrail = { name: 'manners', on: 'output', check: () => new Promise(() => {}) }
    const limits = { maxDurationMs: 50 }
    const { texts, screen } = await played({ steps: [{ text: 'Rude.' }], guardrails: [slow], limits })
    expect(texts).toEqual([expect.stringContaining('This was withheld: the time of the run was up')])
    expect(screen).toBe(texts.join(''))
  })

  it('is taken back where the model has to write it again', async () => {
    const clock = manualClock()
    const model = scriptedModel([{ text: '{"euros":"many"}' }, { text: '{"euros":99}' }])
    const agent = defineAgent({
      name: 'agent',
      instructions: '',
      model,
      output: z.object({ euros: z.number() }),
    })
    const runtime = createRuntime({ ledger: memoryLedger(), agents: [agent], host: { clock } })
    const run = runtime.run(agent, 'How much?')
    await waitUntilSettled(clock, run.result)
    const { texts, screen } = await read(run)
    expect([texts, screen]).toEqual([['{"euros":99}'], '{"euros":99}'])
  })
})

describe('a run read after an event', () => {
  const pay = testTool({ name: 'pay', effect: 'write', check: () => ({ kind: 'ask' }) })
  const steps = [{ text: 'I pay.', toolCalls: [{ name: 'pay', input: {} }] }, { text: 'Paid.' }]

  it('repeats nothing after an approval: events, texts and iteration continue where they were', async () => {
    const set = stage({ steps, tools: [pay] })
    const run = set.start()
    const rest = await set.waitUntilSettled(run.result)
    const approved = run.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada' })
    const seqs: number[] = []
    const iterate = async (): Promise<void> => {
      for await (const { seq } of run.after(rest.seq)) seqs.push(seq)
    }
    await set.waitUntilSettled(iterate())
    await approved
    const all = await set.eventsOf(run)
    expect(seqs).toEqual(all.slice(rest.seq).map(({ seq }) => seq))
    const later = run.after(rest.seq)
    expect(await read(later)).toMatchObject({ texts: ['Paid.'], screen: 'Paid.' })
    const events = await firstValueFrom(later.events$.pipe(toArray()))
    const states = await firstValueFrom(later.state$.pipe(toArray()))
    expect(events.map(({ seq }) => seq)).toEqual(seqs)
    expect(states.map(({ seq }) => seq)).toEqual(seqs)
    expect(states.at(-1)?.totals.turns).toBe(2)
  })

  it('does the same in another process that resumes it', async () => {
    const set = stage({ steps, tools: [pay] })
    const rest = await set.play()
    const other = stage({ ledger: set.ledger, clock: set.clock, steps: steps.slice(1), tools: [pay] })
    const run = other.runtime.resume(rest.runId)
    const resting: number[] = []
    const iterate = async (): Promise<void> => {
      for await (const { seq } of run.after(rest.seq)) resting.push(seq)
    }
    await other.waitUntilSettled(iterate())
    expect(resting).toEqual([])
    await other.waitUntilSettled(run.approve(rest.pendingApprovals[0]!.toolCallId, { by: 'ada' }))
    await other.waitUntilSettled(run.result)
    expect(await read(run.after(rest.seq))).toMatchObject({ texts: ['Paid.'] })
  })

  it('has of each view what follows from a later event, whichever event it is', async () => {
    const set = stage({ steps: [steps[0]!, cut, { text: 'Paid.' }], tools: [testTool({ name: 'pay' })] })
    const run = set.start()
    await set.waitUntilSettled(run.result)
    const events = await set.eventsOf(run)
    const updates = await firstValueFrom(run.textUpdates$.pipe(toArray()))
    expect(updates.filter(({ type }) => type === 'withdrawn')).toMatchObject([{ text: 'The balance is 12' }])
    const messages = ofType(events, 'assistant_message_finished')
    for (const after of [0, ...events.map(({ seq }) => seq)]) {
      const later = run.after(after)
      const isLater = ({ seq }: { readonly seq: number }): boolean => seq > after
      expect(await firstValueFrom(later.events$.pipe(toArray()))).toEqual(events.filter(isLater))
      expect((await firstValueFrom(later.state$.pipe(toArray()))).map(({ seq }) => seq)).toEqual(
        events.filter(isLater).map(({ seq }) => seq),
      )
      expect(await firstValueFrom(later.textUpdates$.pipe(toArray()))).toEqual(updates.filter(isLater))
      expect(await firstValueFrom(later.text$.pipe(toArray())), `after ${after}`).toEqual(
        messages.filter(isLater).map(({ parts }) => joinText(parts)),
      )
    }
  })

  it('ends at once after its end, and says so where it has no such event', async () => {
    const set = stage()
    const run = set.start()
    const { seq } = await set.waitUntilSettled(run.result)
    expect(await firstValueFrom(run.after(seq).events$.pipe(toArray()))).toEqual([])
    expect(await firstValueFrom(run.after(seq).text$.pipe(toArray()))).toEqual([])
    await expect(firstValueFrom(run.after(seq + 1).events$)).rejects.toThrow(`has no event ${seq + 1}`)
    await expect(firstValueFrom(run.after(seq + 1).text$)).rejects.toThrow(`has no event ${seq + 1}`)
    expect(() => run.after(-1)).toThrow('run.after: seq')
    expect(() => run.after(1.5)).toThrow('run.after: seq')
  })
})
