// What a process of the campaign opens: its ledger and its engine.
import type { Ledger } from '@tallystick/core'
import type { Engine } from '@tallystick/engines'
import { bullmqEngine } from '@tallystick/engines/bullmq'
import { pgBossEngine } from '@tallystick/engines/pg-boss'
import { pollingEngine } from '@tallystick/engines/polling'
import { restateEngine } from '@tallystick/engines/restate'
import { postgresLedger } from '@tallystick/ledger/postgres'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { endpoint } from '@restatedev/restate-sdk'
import { connect } from '@restatedev/restate-sdk-clients'
import { Queue } from 'bullmq'
import { PgBoss } from 'pg-boss'

export const engineNames = ['polling', 'polling-sqlite', 'pg-boss', 'bullmq', 'restate'] as const
export type EngineName = (typeof engineNames)[number]

/** Where a process finds its servers, and what it does. */
export interface Task {
  readonly engine: EngineName
  /** The file of effects. */
  readonly world: string
  readonly sqlite?: string
  readonly postgres?: string
  readonly redis?: number
  /** Its workers share the port. */
  readonly restate?: { readonly ingress: string; readonly admin: string; readonly port: number }
  /** Workers look beside the engine for what is due. */
  readonly hasSweep?: boolean
}

export interface Site {
  readonly ledger: Ledger
  readonly engine: Engine
  readonly close: () => Promise<void>
}

/** Servers come and go: what fails is tried again. */
const ignore = (): void => undefined

export async function openSite(task: Task): Promise<Site> {
  const { sqlite, postgres } = task
  const ledger =
    sqlite === undefined
      ? postgresLedger({ connectionString: postgres, maxConnections: 5 })
      : sqliteLedger(sqlite)
  const { engine, close } = await openEngine(task, ledger)
  return {
    ledger,
    engine,
    async close() {
      await close?.()
      await ledger.close()
    },
  }
}

async function openEngine(
  { engine: name, postgres, redis, restate }: Task,
  ledger: Ledger,
): Promise<{ readonly engine: Engine; readonly close?: () => Promise<void> }> {
  switch (name) {
    case 'polling':
    case 'polling-sqlite':
      return { engine: pollingEngine({ ledger, report: ignore }) }
    case 'pg-boss': {
      const boss = new PgBoss({
        ...{ connectionString: postgres ?? '', max: 4, useListenNotify: true, schedule: false },
        ...{ monitorIntervalSeconds: 2, superviseIntervalSeconds: 2 },
      })
      boss.on('error', ignore)
      await boss.start()
      const engine = pgBossEngine({ boss, queueOptions: { heartbeatSeconds: 10, retryDelayMax: 5 } })
      return { engine, close: () => boss.stop({ graceful: false }) }
    }
    case 'bullmq': {
      const queue = new Queue('campaign', { connection: { port: redis ?? 6379, maxRetriesPerRequest: 1 } })
      queue.on('error', ignore)
      const workerOptions = { lockDuration: 6_000, stalledInterval: 2_000 }
      return { engine: bullmqEngine({ queue, workerOptions }), close: () => queue.close() }
    }
    case 'restate': {
      const { ingress = '', admin = '', port = 0 } = restate ?? {}
      const engine = restateEngine({
        ingress: connect({ url: ingress }),
        listen: { port, reusePort: true },
        register: { admin },
        endpoint: () => endpoint().setLogger(ignore),
      })
      return { engine }
    }
  }
}
