# frozen_string_literal: true

# Models and resources of the rows tests, evaluated in the module of one database.
class Desk < Base; end

class Employee < Base
  belongs_to :desk, optional: true
end

class Token < Base; end

class Role < Base
  has_many :assignments
  has_many :users, through: :assignments
end

class VisibleRole < Base
  self.table_name = "roles"
  default_scope { where(hidden: false) }
end

class ChosenRole < Base
  self.table_name = "roles"
  default_scope { where(hidden: Thread.current[:hidden_roles] || false) }
end

class MethodRole < Base
  self.table_name = "roles"
  scope :shown, -> { where(hidden: false) }
  default_scope { shown }
end

class Assignment < Base
  belongs_to :user
  belongs_to :role
  belongs_to :visible_role, foreign_key: :role_id, optional: true
  belongs_to :chosen_role, foreign_key: :role_id, optional: true
  belongs_to :method_role, foreign_key: :role_id, optional: true
end

class Group < Base; end

class Badge < Base; end

class Vehicle < Base; end

class Car < Vehicle; end

class Bike < Vehicle; end

class Note < Base
  belongs_to :subject, polymorphic: true
end

class User < Base
  has_one :employee
  has_one :desk, through: :employee
  has_many :tokens
  has_one :last_login_token, -> { where(on_behalf: false).order(id: :desc) }, class_name: "Token"
  has_one :distinct_token, -> { distinct.order(on_behalf: :desc, last_used_at: :desc) }, class_name: "Token"
  has_many :assignments
  has_many :roles, through: :assignments
  has_many :visible_roles, through: :assignments
  has_many :chosen_roles, through: :assignments
  has_many :method_roles, through: :assignments
  has_many :ranked_roles, -> { order("assignments.rank DESC") }, through: :assignments, source: :role
  has_many :distinct_roles, -> { distinct.order(title: :desc) }, through: :assignments, source: :role
  has_and_belongs_to_many :groups
  belongs_to :manager, class_name: "User", optional: true
  has_many :reports, class_name: "User", foreign_key: :manager_id
  has_many :badges, primary_key: :code, foreign_key: :user_code
  has_many :posts, foreign_key: :author_id
  has_many :comments_received, through: :posts, source: :comments
  has_many :latest_posts, -> { order(id: :desc).limit(2) }, class_name: "Post", foreign_key: :author_id
  has_many :notes, as: :subject
  has_many :vehicles
  has_many :cars
  enum :status, { active: 0, blocked: 1 }
end

class Post < Base
  belongs_to :author, class_name: "User"
  has_many :comments
  has_many :own_comments, ->(post) { where(author_id: post.author_id) }, class_name: "Comment"
end

class Comment < Base
  belongs_to :post
  belongs_to :author, class_name: "User", optional: true
end
