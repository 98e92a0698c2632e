import { DurableObject } from 'cloudflare:workers'

export class RunAlarm extends DurableObject {
  /** Asks for a drive, now or at a time. The earliest time wins. */
  async wake(runId, at = Date.now()) {
    await this.ctx.storage.put('runId', runId)
    const set = await this.ctx.storage.getAlarm()
    if (set === null || at < set) await this.ctx.storage.setAlarm(at)
  }

  async alarm() {
    const runId = await this.ctx.storage.get('runId')
    try {
      const answer = await fetch(`${this.env.SERVICE}/drive`, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.env.SECRET}` },
        body: JSON.stringify({ runId }),
      })
      if (!answer.ok) throw new Error(`The drive was answered with ${answer.status}.`)
      const { status, wakeAt, pending } = await answer.json()
      if (status === 'handedBack' || pending) await this.wake(runId)
      else if (wakeAt !== undefined && status !== 'done') await this.wake(runId, wakeAt)
    } catch {
      // Cloudflare tries an alarm again six times only.
      await this.wake(runId, Date.now() + this.env.RETRY_MS)
    }
  }
}

/** For services elsewhere: `POST /wake` with a run. */
// oxlint-disable-next-line import/no-default-export -- as Cloudflare demands
export default {
  async fetch(request, env) {
    if (request.headers.get('authorization') !== `Bearer ${env.SECRET}`)
      return new Response(null, { status: 401 })
    const { runId, at } = await request.json()
    await env.RUNS.get(env.RUNS.idFromName(runId)).wake(runId, at)
    return new Response(null, { status: 202 })
  },
}
