import type { Run, RuntimeEvent } from '@tallystick/core'
import { firstValueFrom } from 'rxjs'
import type { StreamHost } from '../stream/followed-stream.ts'

/**
 * Resolves with the next event of a run that this process drives. A failure before that event is one of the request,
 * and a later one is reported: no request waits for it.
 */
export async function firstEvent(
  run: Run,
  after: number,
  report: StreamHost['report'],
): Promise<RuntimeEvent> {
  let isOnRecord = false
  run.result.catch((error: unknown) => {
    if (isOnRecord) report(error, `Run ${run.id} failed and is driven here no more`)
  })
  const event = await firstValueFrom(run.after(after).events$)
  isOnRecord = true
  return event
}
