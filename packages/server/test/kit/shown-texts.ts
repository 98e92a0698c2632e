import { from } from 'rxjs'
import type { RuntimeEvent } from '@tallystick/core'
import { toAgUi } from '@tallystick/server'

/** The texts that a client of AG-UI shows at the end, a part each. */
export function shownTexts(events: readonly RuntimeEvent[]): readonly string[] {
  const texts = new Map<unknown, string>()
  toAgUi(from(events)).subscribe(({ type, messageId, delta, messages }) => {
    if (type === 'TEXT_MESSAGE_CONTENT') texts.set(messageId, (texts.get(messageId) ?? '') + String(delta))
    if (type !== 'MESSAGES_SNAPSHOT') return
    const kept = new Set((messages as readonly { readonly id: string }[]).map(({ id }) => id))
    for (const id of texts.keys()) if (!kept.has(id as string)) texts.delete(id)
  })
  return [...texts.values()]
}
