// A server as a module that Bun and Deno serve by its default export.
import { openShopServer } from './shop-server.ts'

const { fetch } = openShopServer()

export default { fetch, hostname: '127.0.0.1', port: 0 }
