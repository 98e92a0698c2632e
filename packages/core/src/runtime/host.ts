import { type Clock, defaultHost, type Host } from '../values/host.ts'
import { isMoment } from '../events/event-parts.ts'
import type { RunId } from '../values/ids.ts'
import { omitUndefined } from '../values/json.ts'
import { requireAnswer, anyFunction, ignoreRejection, valueThat } from '../values/option.ts'
import type { RuntimeOptions } from './runtime-options.ts'

const aTime = valueThat(
  'milliseconds since 1970, a whole number, before the year 10000',
  (value) => isMoment(value) && value >= 0,
)
const aDuration = valueThat('a number of milliseconds', Number.isFinite)
const aFraction = valueThat(
  'a number from 0 (included) to 1 (excluded)',
  (value) => typeof value === 'number' && value >= 0 && value < 1,
)

/** A host as an application gives it, with each of its answers checked: a wrong time or number would make wrong ids and events. */
export function checkHost({
  clock,
  random,
  report,
  process = defaultHost.process,
}: NonNullable<RuntimeOptions['host']>): Host {
  return {
    clock: clock ? checkClock(clock) : defaultHost.clock,
    random: random
      ? () => requireAnswer('host.random of createRuntime', random, aFraction)
      : defaultHost.random,
    report: report ? guardReport(report) : defaultHost.report,
    process,
  }
}

function checkClock(clock: Clock): Clock {
  const subject = 'host.clock of createRuntime'
  const even =
    clock.even && (() => requireAnswer(`even of ${subject}`, () => clock.even?.() as number, aDuration))
  return {
    now: () => requireAnswer(`now of ${subject}`, () => clock.now(), aTime),
    schedule: (...timer) =>
      requireAnswer(`schedule of ${subject}`, () => clock.schedule(...timer), anyFunction),
    ...omitUndefined({ even }),
  }
}

/** A report that throws must not make the run fail that it reports about. */
function guardReport(report: Host['report']): Host['report'] {
  return (error, what) => {
    try {
      ignoreRejection(report(error, what))
    } catch (thrown) {
      defaultHost.report(error, what)
      defaultHost.report(thrown, 'host.report of createRuntime threw, and must not')
    }
  }
}

/**
 * Makes UUIDv7 run ids (RFC 9562, section 5.7) from the host's clock and randomness: 48 bits of milliseconds, then
 * random bits. Ids of one maker ascend, also within a millisecond: the 12 bits after the time count up there.
 */
export function createRunIdMaker({ clock, random }: Pick<Host, 'clock' | 'random'>): () => RunId {
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
    const tail = variant + Array.from({ length: 15 }, () => Math.floor(random() * 16).toString(16)).join('')
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count}-${tail.slice(0, 4)}-${tail.slice(4)}` as RunId
  }
}
