import { firstValueFrom, Observable, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import type { Model } from '@tallystick/core'
import type { ModelSignal, ReplyPart } from '@tallystick/core/vocabulary'
import { checkLaws } from '@tallystick/testkit'
import { ofType, stage } from './stage.ts'

/** A model that reports these signals, and then the reply of these parts. */
function reporting(signals: readonly ModelSignal[], parts: readonly ReplyPart[]): Model {
  return {
    ...{ provider: 'test', api: 'test', modelId: 'm' },
    stream: () =>
      new Observable((subscriber) => {
        for (const signal of signals) subscriber.next(signal)
        subscriber.next({ type: 'model_finished', stopReason: 'end', parts })
        subscriber.complete()
      }),
  }
}

const text = (part: number, words: string, replaces?: true): ModelSignal => ({
  ...{ type: 'model_text', part, text: words },
  ...(replaces && { replaces }),
})

async function played(signals: readonly ModelSignal[], parts: readonly ReplyPart[]) {
  const set = stage({ model: reporting(signals, parts) })
  const run = set.start()
  const result = await set.waitUntilSettled(run.result)
  const events = await set.eventsOf(run)
  const updates = await firstValueFrom(run.textUpdates$.pipe(toArray()))
  return { result, events, updates: updates.map((update) => [update.type, update.text]) }
}

describe('text that its provider takes back in the end', () => {
  it('is not part of the message, and the record says both', async () => {
    const { result, events, updates } = await played(
      [text(0, 'The balance '), text(0, 'is 12.'), text(0, 'The balance is 99.', true)],
      [{ part: 0, type: 'text', text: 'The balance is 99.' }],
    )
    expect(result).toMatchObject({ reason: 'answered', text: 'The balance is 99.' })
    expect(
      ofType(events, 'assistant_text_delta').map(({ text: words, replaces }) => [words, replaces]),
    ).toEqual([
      ['The balance is 12.', undefined],
      ['The balance is 99.', true],
    ])
    expect(checkLaws(events)).toEqual([])
    expect(updates).toEqual([
      ['text', 'The balance is 12.'],
      ['withdrawn', 'The balance is 12.'],
      ['text', 'The balance is 99.'],
    ])
  })

  it('may be one of several parts, may continue, and may be nothing', async () => {
    const { result, events } = await played(
      [
        text(0, 'One. '),
        text(1, 'Twp'),
        text(1, 'Two', true),
        text(1, '. '),
        text(2, 'Three'),
        text(2, '', true),
      ],
      [
        { part: 0, type: 'text', text: 'One. ' },
        { part: 1, type: 'text', text: 'Two. ' },
        { part: 2, type: 'text', text: '' },
      ],
    )
    expect(result).toMatchObject({ reason: 'answered', text: 'One. Two. ' })
    expect(checkLaws(events)).toEqual([])
  })

  it('is still a breach of the adapter where the reply says another text than that', async () => {
    const { result } = await played(
      [text(0, 'One'), text(0, 'Two', true)],
      [{ part: 0, type: 'text', text: 'One' }],
    )
    expect(result).toMatchObject({
      reason: 'model_failed',
      detail: expect.stringContaining('broke its contract'),
    })
  })
})
