// A round trip with kitsu. Prints each result as a line of JSON.
import Kitsu from "kitsu"

const [baseURL] = process.argv.slice(2)
const api = new Kitsu({ baseURL, camelCaseTypes: false, pluralize: false, resourceCase: "none" })
const print = value => console.log(JSON.stringify(value))

const list = await api.get("posts", { params: { include: "writer,tags", sort: "title", page: { size: 2 } } })
print(list.data.map(post => [post.title, post.writer.data.name, post.tags.data.map(tag => tag.name)]))

const created = await api.post("posts", { title: "From kitsu", slug: "kitsu", writer: { data: { type: "writers", id: "2" } } })
print([created.data.title, created.data.writer.data.id])

const id = created.data.id
await api.patch("posts", { id, title: "Changed by kitsu", rating: 4 })
const { data: post } = await api.get(`posts/${id}`, { params: { fields: { posts: "title,rating" } } })
print([post.title, post.rating])

const related = await api.get(`posts/${id}/writer`)
print(related.data.name)

try {
  await api.post("posts", { title: "No" })
} catch (error) {
  print(error.errors.map(({ status, source }) => [status, source.pointer]))
}

await api.delete("posts", id)
print(await api.get(`posts/${id}`).catch(error => error.errors[0].status))
