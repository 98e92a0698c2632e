import type { Agent, Model, Tool } from '@tallystick/core'
import { defineAgent } from '@tallystick/core'
import { anthropic } from '@tallystick/providers/anthropic'
import { calculator } from '@tallystick/tools/calculator'
import { httpFetch } from '@tallystick/tools/http-fetch'
import { sqlQuery } from '@tallystick/tools/sql-query'
import { loopbackModelId } from './choose-model.ts'
import { demoFiles } from './demo-files.ts'
import type { LoopbackServer } from './listen.ts'
import { startModelServer } from './model-server/server.ts'
import { openOrderBook } from './order-book.ts'
import { placeOrder } from './place-order.ts'
import { startRateService } from './rate-service.ts'
import { createSalesDatabase } from './sales-database.ts'
import { stockPlayer } from './stock-player.ts'
import { instructions, ratesOrigin } from './task.ts'

export interface DemoOptions {
  /** Path of the ledger. The demo's own files are next to it. */
  readonly ledgerPath: string
  /** `loopbackModelId`, or one of Anthropic's models if the environment has a key. */
  readonly modelId: string
  /** Milliseconds between two pieces of the loopback model's replies. Default 0. */
  readonly paceMs?: number
}

/** The demo's agent, with everything that it needs running. */
export interface Demo {
  readonly agent: Agent
  /** Stops what runs for the agent. */
  readonly close: () => Promise<void>
}

/** Starts what the agent needs: the sales database, the order book, the rate service and, for the loopback model, its server. */
export async function openDemo({ ledgerPath, modelId, paceMs = 0 }: DemoOptions): Promise<Demo> {
  const { salesPath, ordersPath } = demoFiles(ledgerPath)
  createSalesDatabase(salesPath)
  const book = openOrderBook(ordersPath)
  const servers: LoopbackServer[] = []
  const close = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()))
    book.close()
  }
  try {
    const rates = await startRateService()
    servers.push(rates)
    const model = await openModel(modelId, paceMs, servers)
    const tools = [sqlQuery({ path: salesPath }), fetchRates(rates.origin), calculator(), placeOrder(book)]
    return { agent: defineAgent({ name: 'stock-buyer', instructions, model, tools }), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Fetches from the rate service, wherever it is now, and from nowhere else. */
function fetchRates(servedAt: string): Tool {
  return httpFetch({
    origins: [ratesOrigin],
    connectTo: { [`${new URL(ratesOrigin).hostname}:80`]: new URL(servedAt).host },
  })
}

async function openModel(modelId: string, paceMs: number, servers: LoopbackServer[]): Promise<Model> {
  if (modelId !== loopbackModelId) return anthropic(modelId)
  const server = await startModelServer({ modelId, player: stockPlayer, paceMs })
  servers.push(server)
  return anthropic(modelId, { baseURL: server.origin, apiKey: 'none is needed on loopback' })
}
