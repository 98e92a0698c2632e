import { describe, expect, it } from 'vitest'
import { finished, textShown } from './kit/collect.ts'
import { foldResponse } from './kit/openai-fold.ts'
import { added, completed, created, delta, itemDone, said } from './kit/openai-streams.ts'

describe('text of a response', () => {
  it('that the item contradicts in the end is taken back: the item wins', () => {
    const item = (text: string) => ({
      type: 'message',
      id: 'msg_0',
      content: [{ type: 'output_text', text }],
    })
    const shownBy = (text: string) =>
      foldResponse([created(), added(0, item('')), said(0, ' Hello'), itemDone(0, item(text)), completed()])
        .signals
    const signals = shownBy('Other')
    expect(signals).toContainEqual({ type: 'model_text', part: 0, text: 'Other', replaces: true })
    expect(finished(signals)?.parts).toMatchObject([{ type: 'text', text: 'Other' }])
    // An item that says nothing contradicts nothing.
    expect(finished(shownBy(''))?.parts).toMatchObject([{ type: 'text', text: ' Hello' }])
    expect(textShown(shownBy(' Hello there'))).toBe(' Hello there')
  })

  it('of reasoning that the item contradicts is taken back too', () => {
    const summary = [{ type: 'summary_text', text: 'I look at the clouds.' }]
    const { signals } = foldResponse([
      ...[created(), added(0, { type: 'reasoning', id: 'rs_0', summary: [] })],
      delta('reasoning_summary_text', 0, 'I look at the sea.', { summary_index: 0 }),
      ...[itemDone(0, { type: 'reasoning', id: 'rs_0', summary, encrypted_content: 'ZW5j' }), completed()],
    ])
    expect(finished(signals)?.parts[0]).toMatchObject({ type: 'reasoning', text: 'I look at the clouds.' })
  })
})
