import { Session } from 'node:inspector/promises'
import { timesByPlace, type Profile } from './profile-places.ts'

/** The time between two samples, in microseconds. */
export const samplingUs = 200

/** Does the work, and says where the main thread spent its time. Time in which it waited is left out. */
export async function profiled<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly value: T; readonly profile: Profile }> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: samplingUs })
  await session.post('Profiler.start')
  try {
    const value = await work()
    const { profile } = await session.post('Profiler.stop')
    return { value, profile: timesByPlace(profile, samplingUs) }
  } finally {
    session.disconnect()
  }
}
