// A round trip with devour-client. Prints each result as a line of JSON.
import { createRequire } from "node:module"

const JsonApi = createRequire(import.meta.url)("devour-client").default ?? createRequire(import.meta.url)("devour-client")
const [apiUrl] = process.argv.slice(2)
const api = new JsonApi({ apiUrl, logger: false })
const print = value => console.log(JSON.stringify(value))

api.define("writer", { name: "" })
api.define("tag", { name: "" })
api.define("comment", { body: "" })
api.define("post", {
  title: "", slug: "", rating: 0, body: "", price: "", pinned: "", published_on: "", published_at: "", writer_name: "",
  writer: { jsonApi: "hasOne", type: "writers" },
  tags: { jsonApi: "hasMany", type: "tags" },
  comments: { jsonApi: "hasMany", type: "comments" }
})

const list = await api.findAll("post", { include: "writer,tags", sort: "title", page: { size: 2 } })
print(list.data.map(post => [post.title, post.writer.name, post.tags.map(tag => tag.name)]))

const created = await api.create("post", { title: "From devour", slug: "devour", writer: { type: "writers", id: "2" } })
print([created.data.title, created.data.writer.id])

const id = created.data.id
await api.update("post", { id, title: "Changed by devour", rating: 4 })
const { data: post } = await api.find("post", id)
print([post.title, post.rating])

print((await api.one("post", id).all("comment").get()).data.length)
print(await api.create("post", { title: "No" }).then(() => "created", errors => errors.title.detail))

await api.destroy("post", id)
print(await api.find("post", id).then(() => "still there", () => "gone"))
