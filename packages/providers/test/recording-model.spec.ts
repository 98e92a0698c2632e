import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigurationError, type Model } from '@tallystick/core'
import { type ModelSignal } from '@tallystick/core/vocabulary'
import { scriptedModel } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { anthropic } from '../src/anthropic.ts'
import { playedFetch, playedModel, recordingFetch, recordModel } from '../src/recording.ts'
import { sseBytes } from './kit/bytes.ts'
import { collect, request, textShown } from './kit/collect.ts'
import { user } from './kit/history.ts'
import { serve } from './kit/loopback.ts'
import { ManualClock } from './kit/manual-clock.ts'
import { adapters, apiKey, newFile } from './kit/recording.ts'
import { open, start, text } from './kit/streams.ts'

describe('the signals of a model', () => {
  it.each(adapters)(
    'of $name are played one by one, and end as they ended',
    async ({ rich: bytes, answer, model }) => {
      const file = newFile()
      const server = await serve(answer([bytes]), answer([bytes.subarray(0, 300)]))
      const recorded = recordModel(model(server.url, fetch), file)
      const whole = await collect(recorded)
      const cut = await collect(recorded)
      const played = playedModel(file)
      expect(await collect(played)).toEqual(whole)
      const again = await collect(played)
      expect(again.signals).toEqual(cut.signals)
      expect(cut.failure?.retryable).toBe(true)
      expect(again.failure?.toFailure()).toEqual(cut.failure?.toFailure())
    },
  )

  it('come from a model with the options and bounds of the recorded one, which the ledger keeps', () => {
    const model = { ...scriptedModel([]), pinnedOptions: { server: 'eu' }, maxWebSearches: 3 }
    expect(recordModel(model, newFile())).toMatchObject({
      pinnedOptions: { server: 'eu' },
      maxWebSearches: 3,
    })
    expect(recordModel(scriptedModel([]), newFile())).not.toHaveProperty('pinnedOptions')
  })

  it('that were given up wait where they were given up', async () => {
    const file = newFile()
    const server = await serve({
      pieces: [sseBytes([start(), open(0, { type: 'text', text: '' }), text(0, 'Hm')])],
      ending: 'stall',
    })
    const recorded = recordModel(anthropic('claude-test-1', { apiKey, baseURL: server.url }), file)
    const received = (model: Model) =>
      new Promise<ModelSignal[]>((resolve) => {
        const signals: ModelSignal[] = []
        const subscription = model.stream(request, { clock: new ManualClock() }).subscribe((signal) => {
          signals.push(signal)
          if (signal.type !== 'model_text') return
          subscription.unsubscribe()
          resolve(signals)
        })
      })
    const first = await received(recorded)
    // The wrapped call was closed.
    await server.arrivals[0]!.closed
    expect(textShown(await received(playedModel(file)))).toBe('Hm')
    let ended = false
    const signals: ModelSignal[] = []
    const subscription = playedModel(file)
      .stream(request, { clock: new ManualClock() })
      .subscribe({
        next: (signal) => signals.push(signal),
        error: () => (ended = true),
        complete: () => (ended = true),
      })
    await new Promise((resolve) => setImmediate(resolve))
    expect([signals, ended]).toEqual([first, false])
    subscription.unsubscribe()
  })

  it('are found by what was asked, and the place of a difference is named', async () => {
    const file = newFile()
    const recorded = recordModel(scriptedModel([{ text: 'one' }, { text: 'two' }]), file)
    const ask = (text: string) => ({ ...request, messages: [user(text)] })
    await collect(recorded, ask('1'))
    await collect(recorded, ask('2'))
    const played = playedModel(file)
    expect(textShown((await collect(played, ask('2'))).signals)).toBe('two')
    const differing: readonly [object, RegExp][] = [
      [{ ...ask('1'), instructions: 'Be long.' }, /its instructions/],
      [{ ...ask('1'), tools: [{ name: 'f', description: '', inputSchema: {} }] }, /its tools/],
      [ask('3'), /message 1 of 1/],
      [{ ...ask('1'), messages: [user('1'), user('2')] }, /its length of 1 messages/],
      [{ ...ask('1'), maxOutputTokens: 1 }, /its settings/],
      [{ ...ask('1'), outputSchema: {} }, /its settings/],
    ]
    for (const [asked, where] of differing) {
      const { failure } = await collect(played, asked as typeof request)
      expect(failure).toMatchObject({ class: 'invalid_request', retryable: false })
      expect(failure?.message).toMatch(where)
    }
    expect(() => played.assertComplete()).toThrow(/1 of 2 calls/)
    expect(textShown((await collect(playedModel(file, { match: 'order' }), ask('9'))).signals)).toBe('one')
  })
})

describe('a file', () => {
  it('keeps what it held until something new is recorded', async () => {
    const file = newFile()
    writeFileSync(file, 'old')
    const recorded = recordModel(scriptedModel([{ text: 'new' }]), file)
    expect(readFileSync(file, 'utf8')).toBe('old')
    await collect(recorded)
    expect(readFileSync(file, 'utf8')).not.toContain('old')
  })

  it('that cannot be written is refused before anything is asked', () => {
    expect(() => recordingFetch(join(newFile(), 'not', 'there.jsonl'))).toThrow(ConfigurationError)
    expect(() => recordModel(scriptedModel([]), join(newFile(), 'not', 'there.jsonl'))).toThrow(
      ConfigurationError,
    )
  })

  it.each([
    ['is not there', undefined],
    ['is empty', ''],
    ['is not one of ours', '{"a": 1}\n'],
    ['is of a later version', '{"recording":"calls","version":2}\n'],
    ['is of another kind', '{"recording":"exchanges","version":1}\n'],
    ['is damaged', '{"recording":"calls","version":1}\n{"number":1,'],
    ['holds what is not a call', '{"recording":"calls","version":1}\n{"number":1}\n'],
    ['holds no call', '{"recording":"calls","version":1}\n'],
  ])('that %s is refused at once, by name', (_, content) => {
    const file = newFile()
    if (content !== undefined) writeFileSync(file, content)
    expect(() => playedModel(file)).toThrow(ConfigurationError)
    expect(() => playedModel(file)).toThrow(/recording\.jsonl/)
  })

  it('that holds what is not an exchange is refused at once', () => {
    const file = newFile()
    writeFileSync(file, '{"recording":"exchanges","version":1}\n{"number":1,"request":{"url":"x"}}\n')
    expect(() => playedFetch(file)).toThrow(/belongs to no exchange/)
  })

  it('of several models is refused, since a reply goes back to the model that gave it', async () => {
    const [one, other] = [newFile(), newFile()]
    await collect(recordModel(scriptedModel([{ text: 'a' }], 'm-1'), one))
    await collect(recordModel(scriptedModel([{ text: 'a' }], 'm-2'), other))
    const [, second] = readFileSync(other, 'utf8').split('\n')
    writeFileSync(one, `${readFileSync(one, 'utf8')}${second}\n`)
    expect(() => playedModel(one)).toThrow(/several models/)
  })
})
