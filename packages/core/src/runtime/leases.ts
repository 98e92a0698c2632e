import type { Head, LeaseClaim, Ledger, RunWait } from '../ledger/ledger.ts'
import type { RunState } from '../machine/state.ts'
import { LedgerConflictError, LedgerUnavailableError } from '../values/errors.ts'
import { type Cancel, defaultHost, type Host, type HostProcess } from '../values/host.ts'
import type { RunId } from '../values/ids.ts'
import type { RunLoop } from './run-loop.ts'

/**
 * THE EPOCH OF A WRITER: each process that takes a run over raises it, and signs every append with it. Every ledger
 * refuses an append of an older epoch (`requireHead` of its append rules), so two processes never write one run.
 */

/**
 * Refuses to drive a run whose events say that another writer has raised the epoch further since. Throws a
 * `LedgerConflictError` of kind `epoch`.
 */
export function requireOwnEpoch({ runId, epoch }: Pick<RunState, 'runId' | 'epoch'>, own: number): void {
  if (epoch > own) throw createOvertakenError(runId, epoch)
}

/** Refuses to drive a run whose ledger says that another writer has raised the epoch. Throws a `LedgerConflictError` of kind `epoch`. */
export async function requireLastEpoch(ledger: Ledger, runId: RunId, own: number): Promise<void> {
  const head = await ledger.head(runId)
  if (head) requireOwnEpoch({ runId, epoch: head.epoch }, own)
}

/**
 * Refuses to stop if another writer has recorded more: it may have consumed the inbox that this one found empty, so
 * the state after `seq` is not the last. Throws a `LedgerConflictError` of kind `epoch`.
 */
export async function requireLast(ledger: Ledger, runId: RunId, seq: number): Promise<void> {
  const head = await ledger.head(runId)
  if (head && head.seq > seq) throw createOvertakenError(runId, head.epoch)
}

/** Another process took the run over in the same moment, and writes it now. */
function createOvertakenError(runId: RunId, epoch: number): LedgerConflictError {
  return new LedgerConflictError(
    'epoch',
    `Another process has taken run ${runId} over (epoch ${epoch}), and drives it now. Nothing more is written here; ` +
      `resume() follows it.`,
  )
}

/** How long a lease lasts that nobody renews: so long a run waits whose process has died on another machine. */
export const leaseMs = 12_000

/** An append renews the lease once so much of it is over; others cost nothing for it. */
const renewedByAppendMs = leaseMs / 4

/** Milliseconds without an append after which a lease is renewed in a separate transaction. */
const silentMs = leaseMs / 3

/** How often silent runs are looked for: so a lease is renewed at half of it at the latest. */
const lookMs = leaseMs / 6

interface Held {
  /** When the last renewal was asked for that was granted. */
  at: number
  /** A renewal was asked for since. */
  isAsked: boolean
}

/** The leases of the runs that one runtime drives. */
export class HeldLeases {
  /** Names this runtime in the ledger, legibly. */
  readonly holder: string
  readonly #ledger: Ledger
  readonly #host: Host
  readonly #held = new Map<RunLoop, Held>()
  readonly #releases = new Map<RunId, Promise<void>>()
  #stopTimer: Cancel | undefined
  #isRenewing = false

  constructor(ledger: Ledger, host: Host, name: string) {
    this.#ledger = ledger
    this.#host = host
    this.holder = `${host.process?.name ?? 'a process'} ${name}`
  }

  /** The claim of an append: none while the lease of its drive is young. */
  makeClaim(drive: RunLoop): LeaseClaim | undefined {
    const held = this.#held.get(drive)
    return held && this.now() - held.at < renewedByAppendMs ? undefined : this.#claim
  }

  /** A drive was granted its lease, which it asked for at a time. */
  granted(drive: RunLoop, askedAt: number): void {
    this.#held.set(drive, { at: askedAt, isAsked: false })
    this.#stopTimer ??= this.#host.clock.schedule(lookMs, this.#look, 'upkeep')
  }

  /** True if the lease of a drive may have ended by now, and its run be another process's. */
  isOverdue(drive: RunLoop): boolean {
    const held = this.#held.get(drive)
    return held !== undefined && this.now() - held.at >= leaseMs
  }

  /** The drive has ended: nothing of it is in flight. */
  ended(drive: RunLoop): void {
    this.#held.delete(drive)
    if (this.#held.size > 0) return
    this.#stopTimer?.()
    this.#stopTimer = undefined
  }

  /** A time that never jumps, where the host has one. */
  now(): number {
    const { clock } = this.#host
    return clock.even?.() ?? clock.now()
  }

  /**
   * Raises the epoch of a run and takes its lease. Rejects with a `LedgerConflictError` of kind `lease` while another process
   * drives it, unless that process has died on this machine, or the caller takes the run over in any case.
   */
  async acquire(runId: RunId, takeOver: boolean): Promise<Head> {
    await this.#releases.get(runId)
    try {
      return await this.#ledger.acquire(runId, this.#claim)
    } catch (error) {
      const { holder } = (isDrivenByOther(error) && error.lease) || {}
      if (holder === undefined) throw error
      const hasEnded = this.#hasEnded(holder)
      if (!hasEnded && !takeOver) throw error
      if (!hasEnded) this.#host.report(error, describeTakeOver(runId, holder))
      return await this.#ledger.acquire(runId, { ...this.#claim, from: holder })
    }
  }

  /** The most milliseconds that another process holds a run unless it renews its lease; 0 if none drives it. */
  async elsewhereMs(runId: RunId): Promise<number> {
    const lease = await this.#ledger.lease(runId)
    const isElsewhere = lease && lease.holder !== this.holder && !this.#hasEnded(lease.holder)
    return isElsewhere ? lease.leftMs : 0
  }

  /** Releases a run to others; without `wait`, at once. Never rejects: a lease that cannot be released ends by itself. */
  release(runId: RunId, wait?: RunWait): Promise<void> {
    const released: Promise<void> = this.#ledger
      .release(runId, this.holder, wait)
      .catch((error: unknown) =>
        this.#host.report(error, `The ledger failed while run ${runId} was released`),
      )
      .finally(() => {
        if (this.#releases.get(runId) === released) this.#releases.delete(runId)
      })
    this.#releases.set(runId, released)
    return released
  }

  get #claim(): LeaseClaim {
    return { holder: this.holder, forMs: leaseMs }
  }

  #hasEnded(holder: string): boolean {
    return this.#host.process?.hasEnded(holder) === true
  }

  readonly #look = (): void => {
    this.#stopTimer = this.#host.clock.schedule(lookMs, this.#look, 'upkeep')
    if (!this.#isRenewing) void this.#renew()
    if (this.#olderThan(leaseMs).some(([, { isAsked }]) => isAsked)) void this.#giveUp()
  }

  #olderThan(ms: number): readonly (readonly [RunLoop, Held])[] {
    const now = this.now()
    return [...this.#held].filter(([, { at }]) => now - at >= ms)
  }

  async #renew(): Promise<void> {
    this.#isRenewing = true
    try {
      // An answer that was long in coming says little of now.
      for (let silent = this.#olderThan(silentMs); silent.length > 0; silent = this.#olderThan(silentMs)) {
        const at = this.now()
        for (const [, held] of silent) held.isAsked = true
        const runIds = silent.map(([{ runId }]) => runId)
        const renewed = new Set(await this.#ledger.renew(runIds, this.#claim))
        for (const [drive, held] of silent) {
          if (this.#held.get(drive) !== held) continue
          if (renewed.has(drive.runId) || !(await this.#isOvertaken(drive))) this.granted(drive, at)
        }
      }
    } catch {
      // The next look tries again; what cannot be renewed in time is given up.
    } finally {
      this.#isRenewing = false
    }
  }

  async #isOvertaken(drive: RunLoop): Promise<boolean> {
    const { runId, epoch } = drive
    const head = await this.#ledger.head(runId)
    if (head === undefined || head.epoch === epoch) return false
    this.#lose(drive, createOvertakenError(runId, head.epoch))
    return true
  }

  /**
   * Leases that could not be renewed in time may be another process's by now. A process that stood still reads
   * first what has arrived since: a timer that is set now rings after that.
   */
  async #giveUp(): Promise<void> {
    await Promise.resolve()
    const loseOverdue = (): void => {
      for (const [drive, { isAsked }] of this.#olderThan(leaseMs)) {
        if (isAsked) this.#lose(drive, createNotRenewedError(drive.runId))
      }
    }
    this.#host.clock.schedule(0, loseOverdue, 'upkeep')
  }

  #lose(drive: RunLoop, error: unknown): void {
    if (!this.#held.has(drive)) return
    this.ended(drive)
    drive.lose(error)
  }
}

/** True for the refusal of a run that another process drives. */
export function isDrivenByOther(error: unknown): error is LedgerConflictError {
  return error instanceof LedgerConflictError && error.kind === 'lease'
}

function describeTakeOver(runId: RunId, holder: string): string {
  return (
    `Run ${runId} is taken over from ${holder} without waiting, as takeOver says. If that process lives, what it has under way ` +
    'may happen twice, until it learns of this'
  )
}

function createNotRenewedError(runId: RunId): LedgerUnavailableError {
  return new LedgerUnavailableError(
    `The lease of run ${runId} could not be renewed for ${leaseMs / 1000} seconds, since its ledger did not answer, so another ` +
      'process may drive the run by now. Its work in flight here was told to stop, and nothing more is recorded here.',
  )
}

/**
 * True while a process drives a run: somebody has its lease, and that one is not known to have died on this machine. A run that
 * has not ended, waits for nothing and is not driven was interrupted.
 */
export async function isRunDriven(
  ledger: Pick<Ledger, 'lease'>,
  runId: RunId,
  process: HostProcess | undefined = defaultHost.process,
): Promise<boolean> {
  const lease = await ledger.lease(runId)
  return lease !== undefined && process?.hasEnded(lease.holder) !== true
}
