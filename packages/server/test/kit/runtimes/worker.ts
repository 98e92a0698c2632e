// A server as a worker of Cloudflare: in a Durable Object, whose requests share what one of them has begun.
import type { Server } from '@tallystick/server'
import { openShopServer } from './shop-server.ts'

/** Serves the runs of one ledger. */
export class Shop {
  readonly #server: Server = openShopServer()

  fetch(request: Request): Promise<Response> {
    return this.#server.fetch(request)
  }
}

interface Environment {
  readonly shops: {
    idFromName(name: string): unknown
    get(id: unknown): { fetch(request: Request): Promise<Response> }
  }
}

export default {
  fetch(request: Request, { shops }: Environment): Promise<Response> {
    return shops.get(shops.idFromName('shop')).fetch(request)
  },
}
