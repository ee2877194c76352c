# frozen_string_literal: true

module Castellan
  module Rows
    class SequelRows
      # A caller's dataset as the statement that reads rows; a join to many never multiplies.
      #
      #   DatasetSql.select(DatasetSql.once(User.join(:assignments, user_id: :id), :id), "`users`.`id`")
      module DatasetSql
        WINDOW = %i[order limit offset].freeze
        private_constant :WINDOW

        module_function

        # @return [String]
        def select(dataset, list)
          dataset.select(::Sequel.lit(list)).sql
        end

        # A dataset that may answer a row twice becomes `WHERE id IN (the dataset)`, in the dataset's order and with its limit.
        # @return [Sequel::Dataset]
        def once(dataset, key)
          return dataset unless key && multiplies?(dataset)

          id = ::Sequel.qualify(dataset.first_source_alias, key)
          dataset.db.from(dataset.first_source).where(id => bare(dataset).select(id)).clone(dataset.opts.slice(*WINDOW))
        end

        def bare(dataset)
          dataset.unordered.unlimited.clone(distinct: nil)
        end

        # The same for whoever loads records: as the model's rows.
        # @return [Sequel::Dataset]
        def records(dataset, key)
          return dataset unless key && multiplies?(dataset)

          id = ::Sequel.qualify(dataset.first_source_alias, key)
          all = dataset.respond_to?(:model) ? dataset.model.dataset : dataset.db.from(dataset.first_source)
          all.where(id => bare(dataset).select(id)).clone(dataset.opts.slice(*WINDOW))
        end

        def multiplies?(dataset)
          dataset.joined_dataset? || dataset.opts[:distinct] || dataset.opts[:group]
        end
      end
    end
  end
end
