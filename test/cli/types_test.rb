# frozen_string_literal: true

require "test_helper"
require "castellan/cli"
require "open3"
require "support/npm"
require "tmpdir"

# `castellan types`, run as a program; the TypeScript compiler reads what it prints.
class TypesTest < Minitest::Test
  APP = <<~RUBY
    require "sequel"
    require "castellan"
    DB = Sequel.sqlite
    DB.create_table(:people) { primary_key :id; String :name }
    DB.create_table(:posts) { primary_key :id; String :title, null: false; Integer :rating; foreign_key :person_id, :people }
    class Person < Sequel::Model; end
    class Post < Sequel::Model; many_to_one :person; end
    class ApiResource < Castellan::Resource
      page size: 10
    end
    class PersonResource < ApiResource
      model Person
      type "people"
      attributes :name
      key_transform :dash
    end
    class DocumentResource < Castellan::Resource
      model Post
      type "documents"
      attributes :title
    end
    class RecordResource < DocumentResource
      type "records"
    end
    class PostResource < Castellan::Resource
      model Post
      attributes :title, :rating
      attribute(:loud, columns: [:title], if: ->(viewer) { viewer.admin? }) { |row| row.title.upcase }
      belongs_to :person
      key_transform :dash
      writable :title, :person
      writable(:rating, on: :update) { |viewer| viewer.admin? }
    end
    run Castellan.app { resource PostResource }
  RUBY
  USE = <<~TS
    import type { Document, NewPost, Person, Post, PostChanges } from "./api";
    const created: NewPost = { type: "posts", attributes: { title: "New" }, relationships: { person: { data: { type: "people", id: "1" } } } };
    const changed: PostChanges = { type: "posts", id: "1", attributes: { rating: null } };
    export const read = (document: Document<Post[], Person>): (string | null | undefined)[] => document.data.map((post) => post.attributes?.title);
    export const title = (post: Post): string => post.attributes?.title ?? "";
    export const link = (post: Post): unknown => post.relationships?.person?.links?.related;
    export const version = (document: Document<Post>): string | undefined => document.jsonapi?.version;
    // @ts-expect-error rating is a number
    const wrong: PostChanges = { type: "posts", id: "1", attributes: { rating: "five" } };
    // @ts-expect-error rating cannot be chosen for a new post
    const fresh: NewPost = { type: "posts", attributes: { rating: 5 } };
    export default [created, changed, wrong, fresh];
  TS

  def test_it_prints_types_for_reading_and_for_writing
    output, status = types({ "config.ru" => APP })
    assert status.success?, output
    assert_includes output, <<~TS
      export interface NewPost {
        type: "posts";
        lid?: string;
        attributes?: {
          title?: string | null;
        };
        relationships?: {
          person?: {
            data: {
              type: "people";
              id: string;
            } | null;
          };
        };
      }
    TS
    assert_includes output, "    title?: string;\n    rating?: number | null;\n    loud?: unknown;\n"
    assert_includes output, "export type Resource = DocumentResource | Person | Post | RecordResource;\n"
    refute_includes output, "NewPerson"
    refute_includes output, "export interface Api "
  end

  def test_what_the_application_prints_is_no_part_of_the_types
    noisy = "#{APP}\nputs 'booted'\nsystem 'echo started'\nat_exit { puts 'bye' }\n"
    output, = types({ "config.ru" => noisy })
    assert_empty %w[booted started bye] - output.lines.map(&:chomp)
    assert_equal types({ "config.ru" => APP }).first, types({ "config.ru" => noisy }, err: IO::NULL).first
  end

  def test_an_application_without_resources_or_that_does_not_boot_is_a_failure
    output, status = types({ "config.ru" => "run ->(_env) { [200, {}, []] }" })
    assert_equal [1, "castellan types: the application has no resources\n"], [status.exitstatus, output]
    assert_equal 1, types({ "config.ru" => "raise 'broken'" }).last.exitstatus
    assert_equal 2, types({ "config.ru" => APP }, "a", "b").last.exitstatus
  end

  def test_the_compiler_of_typescript_accepts_it
    large_runs_only
    skip "needs node and npm" unless Castellan::Npm.available?
    Dir.mktmpdir do |dir|
      write_files(dir, { "api.d.ts" => types({ "config.ru" => APP }).first, "use.ts" => USE, "run.mjs" => <<~JS })
        import { execFileSync } from "node:child_process";
        execFileSync("node", ["node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "es2020",
                              "--moduleResolution", "bundler", process.argv[2]], { stdio: "inherit" });
      JS
      output, passed = Castellan::Npm.run("typescript@5.9.3", script: File.join(dir, "run.mjs"), arguments: [File.join(dir, "use.ts")])
      assert passed, output
    end
  end

  private

  def types(files, *arguments, err: %i[child out])
    Dir.mktmpdir do |dir|
      write_files(dir, files)
      command = [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", File.join(ROOT, "exe/castellan"), "types", *arguments]
      Open3.capture2(*command, chdir: dir, err: err)
    end
  end
end
