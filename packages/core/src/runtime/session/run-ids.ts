import type { Host } from '../../values/host.ts'
import type { RunId } from '../../values/ids.ts'

/**
 * Makes UUIDv7 run ids (RFC 9562, section 5.7) from the host's clock and randomness: 48 bits of milliseconds, then
 * random bits. Ids of one maker ascend, also within a millisecond: the 12 bits after the time count up there.
 */
export function runIdMaker({ clock, random }: Pick<Host, 'clock' | 'random'>): () => RunId {
  let lastMs = -1
  let counter = 0
  return () => {
    const now = clock.now()
    if (now > lastMs) {
      lastMs = now
      counter = Math.floor(random() * 0x400)
    } else if (++counter > 0xfff) {
      lastMs++
      counter = 0
    }
    const time = lastMs.toString(16).padStart(12, '0')
    const count = counter.toString(16).padStart(3, '0')
    const variant = (8 + Math.floor(random() * 4)).toString(16)
    const tail = variant + hex(random, 3) + hex(random, 12)
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${tail.slice(0, 4)}-${tail.slice(4)}` as RunId
  }
}

function hex(random: () => number, digits: number): string {
  let text = ''
  while (text.length < digits) text += Math.floor(random() * 16).toString(16)
  return text
}
