/** What workerd is to serve: `worker.js` beside its configuration, on a free port of this machine. */
export const workerdConfig = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .shop)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const shop :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01",
  compatibilityFlags = ["nodejs_compat"],
  durableObjectNamespaces = [(className = "Shop", uniqueKey = "shop", preventEviction = true)],
  durableObjectStorage = (inMemory = void),
  bindings = [(name = "shops", durableObjectNamespace = "Shop")]
);
`
